"""Run the views of a job as one live query. Parsing, the rule for late rows and the definitions are the same as in batch."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import reduce, singledispatch
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.contracts import CONTRACTS, of_kind
from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.columns import ddl
from lockstep.definition.events import events_and_records
from lockstep.definition.states import micros
from lockstep.definition.tables import live_of
from lockstep.definition.windowing import in_windows
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import topic_offsets
from lockstep.ingest.source import read_stream
from lockstep.live import seeds, window_state
from lockstep.live.checkpoint import STATE_PARTITIONS, Checkpoint
from lockstep.live.machine import INITIAL, KEY, OUTPUT, Machines
from lockstep.live.sink import PROPERTIES, Member, Sink
from lockstep.live.watermarks import EventStream
from lockstep.refine.parse import GOOD, parse
from lockstep.refine.writers import kept_writers
from lockstep.session import to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.contracts import Contract
    from lockstep.live.generation import Generation
    from lockstep.live.seeds import Seed
    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
_PARTITION = "_state_partition"


def start(spark: "SparkSession", config: "Settings", members: Sequence[Member], every: float = 1.0) -> "StreamingQuery":
    """Start a job's query from its checkpoint. The caller has checked that it may start.

    A window's row is provisional until the window is closed (update mode). A keyed view's rows are final, or upserted.

    Args:
        every: a micro-batch begins after so many seconds, or when the one before has ended.
    """
    job = members[0][0].job
    for _, view in members:
        lake.create(spark, config, live_of(view), view.live_columns, properties=PROPERTIES)
    set_state_partitions(spark, config, members[0])
    # Spark writes each micro-batch's plan as text for its UI. With all columns, that takes a quarter of the time of planning it.
    spark.conf.set("spark.sql.debug.maxToStringFields", "1")
    # A session keeps its last 16 plans, for a client that asks for one twice. Here they are 16 micro-batches, with all they hold.
    spark.conf.set("spark.connect.session.planCache.enabled", "false")
    return (
        rows(spark, config, members, starts_of(members))
        .writeStream.queryName(name(members))
        .outputMode("update")
        .option("checkpointLocation", job.location(config))
        .trigger(processingTime=f"{round(every * 1000)} milliseconds")
        .foreachBatch(Sink(members))
        .start()
    )


def name(members: Sequence[Member]) -> str:
    """What Spark calls the job's query. A shared job only ever loses views, so their number tells which ones it runs."""
    job = members[0][0].job
    return f"{job} ({len(members)} views)" if job.is_shared else job.name


def starts_of(members: Sequence[Member]) -> Starts:
    """Where the job starts, by topic and partition, if it has no checkpoint yet: where the first of its views does.

    Views of a shared job all start at the first offsets, or all go on from gold: then each leaves out what its machines know.
    """
    starts: dict[str, dict[int, int]] = {}
    for generation, _ in members:
        for topic, offsets in generation.starts.items():
            earliest = starts.setdefault(topic, {})
            earliest |= {p: min(offset, earliest.get(p, offset)) for p, offset in offsets.items()}
    return starts


def set_state_partitions(spark: "SparkSession", config: "Settings", member: Member) -> None:
    """Have the query that this session starts keep its state in as many partitions as its view, or the settings, say.

    The settings say it of machines that share a job. Spark itself aggregates windows, so one partition has room for many views.

    Spark writes the number into the checkpoint with the first batch, and keeps it for the checkpoint's life. A checkpoint that is
    or was shared keeps the number that it has.
    """
    generation, view = member
    number = view.state_partitions
    if generation.job.streams:
        checkpoint = Checkpoint(generation.location(config))
        last = checkpoint.last_batch()
        first = config.state_partitions if view.has_machines else view.state_partitions
        number = first if last is None else int(checkpoint.batch(last).conf[STATE_PARTITIONS])
    spark.conf.set(STATE_PARTITIONS, str(number))


def streams_of(members: Sequence[Member]) -> tuple[str, ...]:
    """The streams that the job reads, in the order of its sources."""
    generation, view = members[0]
    return generation.job.streams or view.streams


def topics_of(members: Sequence[Member]) -> list[str]:
    """The topics that the job reads, in the order of its sources."""
    return [CONTRACTS[stream].topic for stream in streams_of(members)]


def rows(spark: "SparkSession", config: "Settings", members: Sequence[Member], starts: Starts) -> "DataFrame":
    """The rows of a job as a stream over Kafka: of :func:`~lockstep.definition.windowing.in_windows`, or in the columns of
    :data:`~lockstep.live.machine.OUTPUT`.

    Args:
        members: keyed views, or windowed views of one stream.
        starts: per topic and partition, the first offset to read; a topic that is not named is read from its beginning.
    """
    return _rows(members[0][1], members, spark, config, starts)


@singledispatch
def _rows(
    view: View, _members: Sequence[Member], _spark: "SparkSession", _config: "Settings", _starts: Starts
) -> "DataFrame":
    raise TypeError(f"{view.name} is a {type(view).__name__}, which no layer can run")


@_rows.register(Windowed)
def _windowed(
    view: Windowed, members: Sequence[Member], spark: "SparkSession", config: "Settings", starts: Starts
) -> "DataFrame":
    views = {generation.key_label: cast("Windowed", member) for generation, member in members}
    recorded = window_state.load(Checkpoint(members[0][0].location(config)))
    groupings = recorded | {label: member.grouping for label, member in views.items()}
    return in_windows(_window_input(spark, config, [*views.values()], starts), views, groupings, view.state_kept)


@_rows.register(Keyed)
def _keyed(
    _view: Keyed, members: Sequence[Member], spark: "SparkSession", config: "Settings", starts: Starts
) -> "DataFrame":
    views = {generation.key_label: cast("Keyed", view) for generation, view in members}
    streams = streams_of(members)
    inputs = events_and_records(views, {stream: _records(spark, config, stream, starts) for stream in streams})
    # Spark makes a task for each partition of a topic, and each one unpacks the plan of all views, which takes longer than the
    # records do. Two tasks for a core, because they also wait for the broker.
    keyed = _to_state_partitions(spark, inputs.coalesce(2 * config.cores)).groupBy(_PARTITION)
    contracts = of_kind("events", streams)
    checkpoint = Checkpoint(members[0][0].location(config))
    planned = checkpoint.first_planned()
    machines = Machines(views, {s: _event_stream(config, contract, planned) for s, contract in contracts.items()})
    begins = [generation for generation, _ in members if generation.seed] if checkpoint.last_batch() is None else []
    initial = _initial(spark, config, begins) if begins else None
    return keyed.transformWithState(machines, ddl(OUTPUT), outputMode="Update", timeMode="None", initialState=initial)


def _initial(spark: "SparkSession", config: "Settings", begins: "Iterable[Generation]") -> "GroupedData":
    """The machines with which views begin by state partition, in the columns of :data:`~lockstep.live.machine.INITIAL`.

    Raises:
        LockstepError: those of a view are gone.
    """
    of_each = (_machines_of(spark, config, one, one.seed) for one in begins if one.seed)
    return reduce(lambda some, more: some.unionByName(more), of_each).groupBy(_PARTITION)


def _machines_of(spark: "SparkSession", config: "Settings", generation: "Generation", seed: "Seed") -> "DataFrame":
    label, copied = generation.key_label, seeds.copies(config, generation.query).load(seed.copy)
    if copied is None:
        raise LockstepError(
            f"The machines with which {generation.query} was to begin are gone. Reset it again: it waited longer than "
            "LOCKSTEP_RETAIN_HOURS."
        )
    saved = copied.drop_columns("_timer")
    # The row without a machine goes to all state partitions, and tells each of them about ``_until``.
    every = pa.concat_tables([saved, pa.Table.from_pylist([{}], saved.schema)])
    rows = to_dataframe(spark, every).withColumn("_view", F.when(F.col("_key").isNotNull(), F.lit(label)))
    machines = F.to_json(F.collect_list(F.struct(*saved.column_names))).alias("_machines")
    found = _to_state_partitions(spark, rows).groupBy(_PARTITION).agg(machines)
    columns = {"_label": F.lit(label), "_until": F.lit(micros(seed.until)), "_machines": F.col("_machines")}
    return found.select(_PARTITION, *(columns[name].cast(kind).alias(name) for name, kind in INITIAL.items()))


def _event_stream(config: "Settings", contract: "Contract", planned: Starts) -> EventStream:
    """The stream with the partitions that the job's first batch reads, also if that batch runs again.

    Args:
        planned: per topic and partition, where that batch ends; empty if it is not planned yet, or its state tells.
    """
    partitions = planned.get(contract.topic) or topic_offsets(config, contract.topic).partitions
    return EventStream([*partitions], contract.max_out_of_orderness // timedelta(milliseconds=1))


def _to_state_partitions(spark: "SparkSession", inputs: "DataFrame") -> "DataFrame":
    """The rows with ``_PARTITION``: an event goes to its machine's, and what tells how far a partition has come goes to all.

    There is one key for each state partition, such that Spark's own hash spreads them evenly.
    """
    number = int(str(spark.conf.get(STATE_PARTITIONS)))
    partition = F.pmod(F.hash("id"), F.lit(number))
    # So many numbers that each partition surely has one of them.
    found = spark.range(100 * number).groupBy(partition.alias("partition")).agg(F.min("id").alias("key"))
    keys = F.array(*(F.lit(row["key"]).cast("bigint") for row in found.orderBy("partition").collect()))
    own = F.array(F.get(keys, F.pmod(F.hash(*KEY), F.lit(number))))
    return inputs.withColumn(_PARTITION, F.explode(F.when(F.col("_view").isNull(), keys).otherwise(own)))


def _window_input(spark: "SparkSession", config: "Settings", views: Sequence[Windowed], starts: Starts) -> "DataFrame":
    """The valid rows that are on time for one of the views, each event once."""
    view = views[0]
    contract = CONTRACTS[view.input]
    raw = read_stream(spark, config, contract.topic, starts.get(contract.topic))
    valid = parse(raw, contract, kept_writers(config, contract)).where(GOOD)
    # What is late for all of them would count as dropped by the engine.
    valid = valid.where(" OR ".join(sorted({f"({each.on_time})" for each in views})))
    delay = f"{int(view.state_kept.total_seconds())} seconds"
    return valid.withWatermark(view.event_time, delay).dropDuplicatesWithinWatermark([*contract.unique_id])


def _records(spark: "SparkSession", config: "Settings", stream: str, starts: Starts) -> "DataFrame":
    """The valid changes of a table; of a stream of events all records, with ``_good``.

    Those that are not good are no events, but like heartbeats they tell how far their partition has come.
    """
    contract = CONTRACTS[stream]
    raw = read_stream(spark, config, contract.topic, starts.get(contract.topic), config.max_offsets_per_trigger)
    parsed = parse(raw, contract, kept_writers(config, contract))
    if contract.kind == "changes":
        return parsed.where(GOOD)
    # The operator decides what is late by its partition's watermark.
    return parsed.withColumns({"_good": F.expr(GOOD), "_watermark": F.lit(None).cast("timestamp")})
