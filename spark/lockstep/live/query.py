"""Run one view as a live query. Parsing, the rule for late rows and the view's definition are the same as in batch."""

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
from lockstep.live.checkpoint import STATE_PARTITIONS
from lockstep.live.generations import Generation
from lockstep.live.machine import Machine
from lockstep.live.sink import Sink
from lockstep.refine.parse import GOOD, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
# How far the timestamps of one partition may run backwards when several producers write to it: their clocks differ, and each
# producer collects a batch before it sends. A live row waits for this long, so it is short.
DISORDER = "2 seconds"


def start(spark: "SparkSession", config: "Settings", view: View, generation: Generation) -> "StreamingQuery":
    """Start the view's query from the checkpoint of a generation. The caller has checked that it may start.

    A window's row is provisional until the window is closed (update mode). A keyed view's rows are final, or upserted.
    """
    table = live_of(view)
    lake.create(spark, config, table, view.live_columns)
    set_state_partitions(spark, view)
    return (
        rows(spark, config, view, generation.starts)
        .writeStream.queryName(view.name)
        .outputMode("update")
        .option("checkpointLocation", generation.location(config))
        .trigger(processingTime="1 second")
        .foreachBatch(Sink(generation, view))
        .start()
    )


def set_state_partitions(spark: "SparkSession", view: View) -> None:
    """Have the queries that this session starts keep their state in as many partitions as the view declares.

    Spark writes the number into the checkpoint with the first batch, and keeps it for the checkpoint's life.
    """
    spark.conf.set(STATE_PARTITIONS, str(view.state_partitions))


def rows(spark: "SparkSession", config: "Settings", view: View, starts: Starts) -> "DataFrame":
    """The view's rows as a stream over Kafka.

    Args:
        starts: per topic and partition, the first offset to read; a topic that is not named is read from its beginning.
    """
    return _rows(view, spark, config, starts)


@singledispatch
def _rows(view: View, _spark: "SparkSession", _config: "Settings", _starts: Starts) -> "DataFrame":
    raise TypeError(f"{view.name} is a {type(view).__name__}, which no layer can run")


@_rows.register(Windowed)
def _windowed(view: Windowed, spark: "SparkSession", config: "Settings", starts: Starts) -> "DataFrame":
    return view.transform(_window_input(spark, config, view, starts))


@_rows.register(Keyed)
def _keyed(view: Keyed, spark: "SparkSession", config: "Settings", starts: Starts) -> "DataFrame":
    inputs = events(view, {stream: _with_log_time(spark, config, stream, starts) for stream in view.streams})
    timed = any(not source.is_table for source in view.inputs)
    columns = ddl({**view.output_columns, "_revision": "BIGINT"})
    return inputs.groupBy("_key").transformWithState(
        Machine(view), columns, outputMode="Update", timeMode="EventTime" if timed else "None"
    )


def _window_input(spark: "SparkSession", config: "Settings", view: Windowed, starts: Starts) -> "DataFrame":
    """The valid rows that are on time, each event once."""
    contract = CONTRACTS[view.input]
    raw = read_stream(spark, config, contract.topic, starts.get(contract.topic))
    valid = parse(raw, contract).where(GOOD).where(view.on_time)
    delay = f"{int(view.state_kept.total_seconds())} seconds"
    return valid.withWatermark(view.event_time, delay).dropDuplicatesWithinWatermark([*contract.unique_id])


def _with_log_time(spark: "SparkSession", config: "Settings", stream: str, starts: Starts) -> "DataFrame":
    """The valid rows of a stream. For events, each partition has a watermark on the arrival time.

    Spark takes the lowest of all watermarks, so the query's watermark is the time that every partition's log has passed.
    Heartbeats advance it, and are dropped after it. The filter that drops them uses the arrival time, because Spark pushes other
    filters below the watermark.
    """
    contract = CONTRACTS[stream]
    since = starts.get(contract.topic)
    if contract.kind == "changes":
        changes = read_stream(spark, config, contract.topic, since, config.max_offsets_per_trigger)
        valid = parse(changes, contract).where(GOOD)
        # A change is never late, so Spark must not compare it with the watermark of the events.
        return valid.withColumn("_arrival", F.expr("TIMESTAMP '9999-12-31'"))
    partitions = topic_offsets(config, contract.topic).partitions
    branches = [
        parse(
            read_partition(spark, config, contract.topic, p, since, config.max_offsets_per_trigger // len(partitions)),
            contract,
        ).withWatermark("_arrival", DISORDER)
        for p in sorted(partitions)
    ]
    rows_of_all = reduce(lambda left, right: left.unionAll(right), branches)
    return rows_of_all.where(F.when(F.expr(GOOD), F.col("_arrival")).isNotNull())
