"""Write a live query's micro-batches into its table, each one once, however often Spark runs it."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, settings
from lockstep.definition import View
from lockstep.definition.version import definition_version
from lockstep.definition.view import Output
from lockstep.lake import Txn
from lockstep.live import lease
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generations import Generation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

# Micro-batches. One starts every second, so a busy table is compacted about every three minutes. The query waits for it, so more
# often would slow the query down; more rarely would leave each MERGE with too many small files to read.
COMPACT_EVERY = 200
# Writes a micro-batch, and returns whether there were rows to write.
Write = Callable[["Settings", "DataFrame", int], bool]


class Sink:
    """Writes a micro-batch of a view's rows into ``live.<view>``, and compacts the table between two micro-batches.

    It is pickled and sent to the server, so it has only names, and loads the settings where it runs.
    """

    def __init__(self, generation: Generation, view: View) -> None:
        # Imported here, because each query has its own worker process, and most queries deliver no alerts.
        from lockstep.sinks.alerts import Alerts

        self.generation, self.table, self.key = generation, generation.table, view.key
        self.rows_written, self.definition = generation.rows_written(view), definition_version(view)
        self.alerts = Alerts(view.name, generation.number, view.alerts) if view.alerts else None
        writers: dict[Output, Write] = {
            Output.WINDOWS: self._windows,
            Output.UPSERT: self._upsert,
            Output.APPEND: self._append,
        }
        self._write = writers[view.output]

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        config = settings.load()
        lease.acquire(config, self.generation.query)
        # Persisted, because each further action on the rows would run the whole micro-batch again.
        rows = rows.where(self.rows_written).withColumn("_updated_at", F.current_timestamp()).persist()
        try:
            if not self._write(config, rows, batch_id):
                return
            if self.alerts:
                self.alerts(rows, batch_id)
        finally:
            rows.unpersist()
        if batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            rows.sparkSession.sql(f"OPTIMIZE delta.`{lake.path(config, self.table)}`")

    def _append(self, config: "Settings", rows: "DataFrame", batch_id: int) -> bool:
        if rows.isEmpty():
            return False
        lake.append(rows, config, self.table, self._txn(batch_id), self._record(config, batch_id))
        return True

    def _windows(self, config: "Settings", rows: "DataFrame", batch_id: int) -> bool:
        first: datetime | None = rows.agg(F.min("window_start")).collect()[0][0]
        if first is None:
            return False
        # A literal, so that Delta skips the files of older windows.
        self._merge(config, rows, batch_id, f"t.window_start >= '{first:%F %T}'", "true")
        return True

    def _upsert(self, config: "Settings", rows: "DataFrame", batch_id: int) -> bool:
        if rows.isEmpty():
            return False
        values = [name for name in rows.columns if name not in self.key]
        newest = rows.groupBy(*self.key).agg(F.max_by(F.struct(*values), "_revision").alias("newest"))
        self._merge(config, newest.select(*self.key, "newest.*"), batch_id, "true", "s._revision > t._revision")
        return True

    def _merge(self, config: "Settings", rows: "DataFrame", batch_id: int, where: str, newer: str) -> None:
        lake.merge(
            rows,
            config,
            self.table,
            on=" AND ".join([where, *(f"t.{name} <=> s.{name}" for name in self.key)]),
            newer=newer,
            txn=self._txn(batch_id),
            record=self._record(config, batch_id),
        )

    def _txn(self, batch_id: int) -> Txn:
        return Txn(self.generation.txn_app, batch_id)

    def _record(self, config: "Settings", batch_id: int) -> dict[str, object]:
        """The commit's record: where the batch ended, and which definition its rows follow."""
        batch = Checkpoint(self.generation.location(config)).batch(batch_id)
        return {
            "writer": "live",
            "generation": self.generation.number,
            "batch_id": batch_id,
            "position": batch.offsets,
            "watermark": batch.watermark,
            "definition": self.definition,
        }
