"""Write a live query's micro-batches into its table, each one once, however often Spark runs it.

The rows of a micro-batch are few, so they are collected, and committed without Spark: a third of the CPU of Spark's MERGE. The
table has one writer at a time: the query that holds the lease of its checkpoint. So it also compacts and vacuums the table,
between two micro-batches.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from lockstep import settings
from lockstep.definition import View
from lockstep.definition.version import definition_version
from lockstep.definition.view import Output
from lockstep.lake import Txn
from lockstep.lake.small_commits import SmallCommits, same
from lockstep.live import lease
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generations import Generation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

# Micro-batches. One starts every second, so a busy table is compacted about every three minutes. The query waits for it, so more
# often would slow the query down; more rarely would leave each MERGE with too many small files to read.
TIDY_EVERY = 200
# Writes the rows of a micro-batch.
Write = Callable[[SmallCommits, pa.Table, Txn, dict[str, object]], None]


class Sink:
    """Writes a micro-batch of a view's rows into ``live.<view>``, and tidies the table between two micro-batches.

    It is pickled and sent to the server, so it has only names, and loads the settings and opens the table where it runs.
    """

    def __init__(self, generation: Generation, view: View) -> None:
        # Imported here, because each query has its own worker process, and most queries deliver no alerts.
        from lockstep.sinks.alerts import Alerts

        self.generation, self.key = generation, view.key
        self.rows_written, self.definition = generation.rows_written(view), definition_version(view)
        self.alerts = Alerts(view.name, generation.number, view.alerts) if view.alerts else None
        writers: dict[Output, Write] = {
            Output.WINDOWS: self._windows,
            Output.UPSERT: self._upsert,
            Output.APPEND: SmallCommits.append,
        }
        self._write = writers[view.output]
        self._opened: SmallCommits | None = None

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        config = settings.load()
        lease.acquire(config, self.generation.query)
        written = rows.where(self.rows_written).withColumn("_updated_at", F.current_timestamp()).toArrow()
        if not written.num_rows:
            return
        table = self._table(config)
        self._write(table, written, Txn(self.generation.txn_app, batch_id), self._record(config, batch_id))
        if self.alerts:
            self.alerts(rows.sparkSession.createDataFrame(written), batch_id)
        if batch_id % TIDY_EVERY == TIDY_EVERY - 1:
            table.tidy(config.retain_hours)

    def _table(self, config: "Settings") -> SmallCommits:
        if self._opened is None:
            self._opened = SmallCommits(config, self.generation.table)
        return self._opened

    def _windows(self, table: SmallCommits, rows: pa.Table, txn: Txn, record: dict[str, object]) -> None:
        first = pc.min(rows["window_start"]).as_py()
        # A literal, so that files of older windows are skipped.
        recent = f"t.window_start >= timestamp '{first:%F %T}'" if first else "true"
        table.merge(rows, " AND ".join([recent, *map(same, self.key)]), None, txn, record)

    def _upsert(self, table: SmallCommits, rows: pa.Table, txn: Txn, record: dict[str, object]) -> None:
        on = " AND ".join(map(same, self.key))
        table.merge(newest(rows, self.key), on, "s._revision > t._revision", txn, record)

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


def newest(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Of each key the row with the highest ``_revision``. Pure."""
    ordered = rows.sort_by("_revision")
    numbered = ordered.append_column("_row", pa.array(range(ordered.num_rows)))
    last = numbered.group_by([*key]).aggregate([("_row", "max")])
    return ordered.take(last["_row_max"])
