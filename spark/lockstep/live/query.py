"""One view as a live query: the same parsing, the same rule for lateness, the same definition as in batch."""

from collections.abc import Mapping
from functools import reduce, singledispatch
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.columns import ddl
from lockstep.definition.events import events
from lockstep.definition.tables import live_of
from lockstep.ingest.offsets import topic_offsets
from lockstep.ingest.source import read_partition, read_stream
from lockstep.live.generations import Generation
from lockstep.live.machine import Machine
from lockstep.live.sink import Sink
from lockstep.refine.parse import GOOD, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
# How far the timestamps of one partition may run backwards, when several producers write to it.
DISORDER = "2 seconds"


def start(spark: "SparkSession", config: "Settings", view: View, generation: Generation) -> "StreamingQuery":
    """Start the view's query from the checkpoint of a generation, which says that it may start.

    A window's row is provisional until the window is closed (update mode); a keyed view's rows are final, or upserted.
    """
    table = live_of(view)
    lake.create(spark, config, table, view.live_columns)
    return (
        rows(spark, config, view, generation.starts)
        .writeStream.queryName(view.name)
        .outputMode("update")
        .option("checkpointLocation", generation.location(config))
        .trigger(processingTime="1 second")
        .foreachBatch(Sink(generation, view))
        .start()
    )


def rows(spark: "SparkSession", config: "Settings", view: View, starts: Starts) -> "DataFrame":
    """The view over the log, as a stream: from its beginning, or where a topic is named in ``starts`` from there."""
    return _rows(view, spark, config, starts)


@singledispatch
def _rows(view: View, _spark: "SparkSession", _config: "Settings", _starts: Starts) -> "DataFrame":
    raise TypeError(f"{view.name} is a {type(view).__name__}, which no layer can run")


@_rows.register(Windowed)
def _windowed(view: Windowed, spark: "SparkSession", config: "Settings", starts: Starts) -> "DataFrame":
    return view.transform(_window_input(spark, config, view, starts))


@_rows.register(Keyed)
def _keyed(view: Keyed, spark: "SparkSession", config: "Settings", starts: Starts) -> "DataFrame":
    found = events(view, {stream: _with_log_time(spark, config, stream, starts) for stream in view.streams})
    timed = any(not one.is_table for one in view.inputs)
    columns = ddl({**view.output_columns, "_revision": "BIGINT"})
    return found.groupBy("_key").transformWithState(
        Machine(view), columns, outputMode="Update", timeMode="EventTime" if timed else "None"
    )


def _window_input(spark: "SparkSession", config: "Settings", view: Windowed, starts: Starts) -> "DataFrame":
    """Good rows that count, each event once."""
    contract = CONTRACTS[view.input]
    raw = read_stream(spark, config, contract.topic, starts.get(contract.topic))
    found = parse(raw, contract).where(GOOD).where(view.on_time)
    delay = f"{int(view.state_kept.total_seconds())} seconds"
    return found.withWatermark(view.event_time, delay).dropDuplicatesWithinWatermark([*contract.unique_id])


def _with_log_time(spark: "SparkSession", config: "Settings", stream: str, starts: Starts) -> "DataFrame":
    """Good rows of a stream; of events, with a watermark of their arrival for each partition.

    The engine takes the lowest of all watermarks, so that it says what time every partition's log has passed. Heartbeats
    move it on and then are dropped: by a filter that needs the arrival, because others are pushed below the watermark.
    """
    contract = CONTRACTS[stream]
    since = starts.get(contract.topic)
    if contract.kind == "changes":
        good = parse(read_stream(spark, config, contract.topic, since), contract).where(GOOD)
        # Never late: the engine must not compare them with the watermark of the others.
        return good.withColumn("_arrival", F.expr("TIMESTAMP '9999-12-31'"))
    partitions = topic_offsets(config, contract.topic).partitions
    branches = [
        parse(read_partition(spark, config, contract.topic, p, since), contract).withWatermark("_arrival", DISORDER)
        for p in sorted(partitions)
    ]
    together = reduce(lambda one, other: one.unionAll(other), branches)
    return together.where(F.when(F.expr(GOOD), F.col("_arrival")).isNotNull())
