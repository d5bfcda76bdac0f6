"""Write a job's micro-batches into the tables of its views, each one once, however often Spark runs it.

The rows of a micro-batch are few, so they are collected, and committed without Spark: a third of the CPU of Spark's MERGE. A
table has one writer at a time: the job that holds the view's lease. So it also compacts and vacuums the table, between two
micro-batches.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lockstep import settings
from lockstep.contracts import CONTRACTS
from lockstep.definition import View, states
from lockstep.definition.events import as_rows
from lockstep.definition.machine import as_table
from lockstep.definition.version import definition_version
from lockstep.definition.view import Output
from lockstep.lake import Txn
from lockstep.lake.compaction import compact
from lockstep.lake.small_commits import SmallCommits, newest
from lockstep.live import lease
from lockstep.live.checkpoint import Batch, Checkpoint
from lockstep.live.generation import Generation
from lockstep.live.watermarks import clock_of
from lockstep.session import collect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

# Commits. A busy table has one each second, so it is compacted about every three minutes. The job waits for it, so more often
# would slow it down; more rarely would leave each MERGE with too many small files to read.
TIDY_EVERY = 200
# A busy table has a new version, with new files, each second. Nobody reads one for longer than a task of the live pool may take,
# and reconciliation asks no older commit who has written a row.
OLD_FILES_HOURS = 6
# A commit works for 0.03 s and waits for as long, and a keyed job has up to 18 of them.
_COMMITS_AT_ONCE = 4
PROPERTIES = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": f"interval {OLD_FILES_HOURS} hours",
    "delta.checkpointInterval": "100",
}
_WRITTEN_AT = "_updated_at"
# Writes the rows of a micro-batch.
Write = Callable[[SmallCommits, pa.Table, Txn, dict[str, object]], None]
# A view's rows: in Arrow, or as a state machine gives them.
Rows: TypeAlias = pa.Table | list[dict[str, Any]]
# A view of a job, and its current generation.
Member = tuple[Generation, View]


class Sink:
    """Writes the micro-batches of a job.

    It is pickled and sent to the server, so it loads the settings and opens the tables where it runs.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.queries = [generation.query for generation, _ in members]
        self.job = members[0][0].job
        self.views = {generation.key_label: ViewSink(generation, view) for generation, view in members}
        self._config: Settings | None = None

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        # To load them takes as long as to commit the rows.
        config = self._config = self._config or settings.load()
        lease.acquire(config, self.queries)
        found = collect(rows)
        if not found.num_rows:
            return
        batch = Checkpoint(self.job.location(config)).batch(batch_id)
        of_views, shown = _by_view(found) if "_row" in found.column_names else (_by_window(found), {})
        sinks = {label: sink for label, sink in self.views.items() if label in of_views}
        with ThreadPoolExecutor(_COMMITS_AT_ONCE) as threads:
            commits = {
                label: threads.submit(sink.write, config, of_views[label], batch, shown.get(sink.clock, 0))
                for label, sink in sinks.items()
            }
        # One view after the other: what sends them belongs to one thread.
        for label, sink in sinks.items():
            sink.alert(rows.sparkSession, commits[label].result(), batch)


def _by_window(rows: pa.Table) -> Mapping[str, Rows]:
    """The rows of :func:`~lockstep.definition.windowing.in_windows`, by the label of their view."""
    labels = [name for name in rows.column_names if name != "_view"]
    found = {label: pc.list_flatten(rows[label].combine_chunks()) for label in labels}
    return {label: pa.Table.from_struct_array(of_view) for label, of_view in found.items() if len(of_view)}


def _by_view(rows: pa.Table) -> tuple[Mapping[str, Rows], Mapping[str, int]]:
    """The rows of :class:`~lockstep.live.machine.Machines`, as dicts, by the label of their view; and what the clocks show."""
    found, shown = defaultdict(list), dict[str, int]()
    for view, text, revision in as_rows(rows.select(["_view", "_row", "_revision"])):
        values = states.loads(text)
        if view is None:
            # Each state partition has clocks of its own.
            shown = {clock: min(at, shown.get(clock, at)) for clock, at in values.items()}
        else:
            found[view].append(values | {"_revision": revision})
    return found, shown


class ViewSink:
    """Writes the rows of one view into ``live.<view>``, sends its alerts, and tidies the table from time to time."""

    def __init__(self, generation: Generation, view: View) -> None:
        # Imported here, because most jobs deliver no alerts.
        from lockstep.sinks.alerts import Alerts

        self.generation, self.key, self.time_column = generation, view.key, view.time_column
        self.clock = clock_of(view)
        self.topics = {CONTRACTS[stream].topic for stream in view.streams}
        self.definition = definition_version(view)
        self.alerts = Alerts(view.name, generation.number, view.alerts) if view.alerts else None
        writers: dict[Output, Write] = {
            Output.WINDOWS: self._windows,
            Output.UPSERT: self._upsert,
            Output.APPEND: SmallCommits.append,
        }
        self._write = writers[view.output]
        self._table: SmallCommits | None = None
        self._tidied = 0

    def write(self, config: "Settings", found: Rows, batch: Batch, watermark: int) -> pa.Table:
        """Write what the job found: the view's columns, in any order. Returns the rows as they are in the table.

        Args:
            watermark: what the view's clock shows (milliseconds, UTC); 0 of a windowed view.
        """
        table = self._opened(config)
        schema = table.schema
        if not isinstance(found, pa.Table):
            found = as_table(found, schema.remove(schema.get_field_index(_WRITTEN_AT)))
        rows = self._written(found, schema)
        if rows.num_rows:
            self._write(table, rows, Txn(self.generation.txn_app, batch.number), self._record(batch, watermark))
            if table.version // TIDY_EVERY > self._tidied:
                compact(table)
                table.vacuum(OLD_FILES_HOURS)
                self._tidied = table.version // TIDY_EVERY
        return rows

    def alert(self, spark: "SparkSession", rows: pa.Table, batch: Batch) -> None:
        """Send the rows as alerts, if the view raises any."""
        if self.alerts and rows.num_rows:
            self.alerts(spark.createDataFrame(rows), batch.number)

    def _opened(self, config: "Settings") -> SmallCommits:
        if self._table is None:
            self._table = SmallCommits(config, self.generation.table)
            self._table.set_properties(PROPERTIES)
            self._tidied = self._table.version // TIDY_EVERY
        return self._table

    def _written(self, found: pa.Table, schema: pa.Schema) -> pa.Table:
        """The rows that this generation writes, as the table has them. Earlier generations wrote the others."""
        now = pa.scalar(datetime.now(UTC), schema.field(_WRITTEN_AT).type)
        rows = found.append_column(_WRITTEN_AT, pa.repeat(now, len(found))).select(schema.names).cast(schema)
        if self.generation.since is None:
            return rows
        return rows.filter(pc.field(self.time_column) >= pa.scalar(self.generation.since, now.type))

    def _windows(self, table: SmallCommits, rows: pa.Table, txn: Txn, record: dict[str, object]) -> None:
        table.merge(rows, self.key, None, txn, record)

    def _upsert(self, table: SmallCommits, rows: pa.Table, txn: Txn, record: dict[str, object]) -> None:
        rows = newest(rows, self.key, "_revision")
        table.merge(rows, self.key, "s._revision > t._revision", txn, record)

    def _record(self, batch: Batch, watermark: int) -> dict[str, object]:
        """The commit's record: where the batch ended in the view's topics and in time, and which definition its rows follow."""
        return {
            "writer": "live",
            "generation": self.generation.number,
            "batch_id": batch.number,
            "position": {topic: ends for topic, ends in batch.offsets.items() if topic in self.topics},
            "watermark": watermark,
            "definition": self.definition,
        }
