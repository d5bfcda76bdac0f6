"""One view as a live query: the same parsing, the same rule for lateness, the same definition as in batch."""

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, settings
from lockstep.contracts import CONTRACTS
from lockstep.ingest import ledger
from lockstep.ingest.source import read_stream
from lockstep.lake import Txn
from lockstep.refine.parse import good, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings
    from lockstep.views import View


COMPACT_EVERY = 200


def live_of(view: "View") -> str:
    """The view's table in the live layer."""
    return f"live.{view.name}"


def events(spark: "SparkSession", config: "Settings", view: "View") -> "DataFrame":
    """The view's input as a stream: good rows, on time by the log's rule, each event once."""
    contract = CONTRACTS[view.input]
    rows = good(parse(read_stream(spark, config, contract.topic), contract)).where(view.on_time)
    delay = f"{int(view.state_kept.total_seconds())} seconds"
    return rows.withWatermark(view.event_time, delay).dropDuplicatesWithinWatermark([*contract.unique_id])


def start(spark: "SparkSession", config: "Settings", view: "View") -> "StreamingQuery":
    """Start the view's query, in update mode: a row is provisional until its window is closed."""
    table = live_of(view)
    lake.create(spark, config, table, f"{view.columns}, _updated_at TIMESTAMP")
    return (
        view.transform(events(spark, config, view))
        .writeStream.queryName(view.name)
        .outputMode("update")
        .option("checkpointLocation", lake.checkpoint(config, view.name, ledger.GENERATION))
        .trigger(processingTime="1 second")
        .foreachBatch(Sink(table, view.key))
        .start()
    )


class Sink:
    """Upserts a micro-batch into the live table, once, however often Spark runs it.

    It is pickled to the server, so it holds names only, and reads the settings where it runs.
    """

    def __init__(self, table: str, key: tuple[str, ...]) -> None:
        self.table, self.key = table, key

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        # Persisted, because each further look at the rows would run the whole micro-batch again.
        rows = rows.persist()
        try:
            first = rows.agg(F.min("window_start")).collect()[0][0]
            if first is not None:
                self._upsert(rows, batch_id, first)
        finally:
            rows.unpersist()

    def _upsert(self, rows: "DataFrame", batch_id: int, first: datetime) -> None:
        config = settings.load()
        lake.merge(
            rows.withColumn("_updated_at", F.current_timestamp()),
            config,
            self.table,
            # The literal lets Delta skip the files of older windows.
            on=" AND ".join([f"t.window_start >= '{first:%F %T}'", *(f"t.{name} <=> s.{name}" for name in self.key)]),
            newer="true",
            txn=Txn(f"live:{self.table}:{ledger.GENERATION}", batch_id),
            record={"writer": "live", "batch_id": batch_id},
        )
        if batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            rows.sparkSession.sql(f"OPTIMIZE delta.`{lake.path(config, self.table)}`")
