"""The shadows of a stream: the rows that bronze has lost, and silver as today's code parses and deduplicates it."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.columns import QUARANTINE, log_columns
from lockstep.definition.tables import Tables, shadow_of
from lockstep.errors import DataLoss
from lockstep.ingest.offsets import topic_offsets
from lockstep.ingest.source import read_range
from lockstep.ledger.event_time import newest_at
from lockstep.ledger.ranges import Range, to_where
from lockstep.refine.classified import ERASED, counted
from lockstep.refine.duplicates import classify, oldest_of, remembered
from lockstep.refine.rows import silver_rows
from lockstep.refine.writers import headers, writers_of
from lockstep.replay.plan import Part, Plan
from lockstep.replay.runs import enclosing, overlap, runs_of
from lockstep.replay.stages import ShadowedBronze, ShadowedSilver
from lockstep.replay.tables import shadow_result, write_shadow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

_POSITION = ("_partition", "_offset")


def shadow_bronze(spark: "SparkSession", settings: "Settings", part: Part, replay: str) -> ShadowedBronze:
    """Read from Kafka the rows that bronze was given but does not have. Rows that it has stay as they are.

    Raises:
        DataLoss: Kafka does not have them any more.
    """
    bronze = Tables.of(CONTRACTS[part.stream]).bronze
    table = shadow_of(bronze, replay)
    if known := shadow_result(settings, table, ShadowedBronze):
        return known
    entries = [run.entry for run in runs_of(settings, bronze, "timestamp", part.ranges)]
    rows = lake.read(spark, settings, bronze)
    # One range for each partition: Spark's source takes no more, and rows that bronze has are left out below. An empty range does
    # not count: its offset may be older than the log's first.
    ranges = enclosing(r for entry in _entries_with_lost_rows(spark, rows, entries) for r in entry.ranges if r.size)
    lost = rows.where("false")
    if ranges:
        _check_log(settings, ranges)
        present = rows.where(to_where(ranges)).select("partition", "offset")
        from_kafka = read_range(spark, settings, ranges)
        lost = from_kafka.join(present, ["partition", "offset"], "left_anti").select(*rows.columns)
    shadow = ShadowedBronze(ranges=tuple(ranges))
    write_shadow(spark, settings, table, lost, shadow)
    return shadow


def _entries_with_lost_rows(
    spark: "SparkSession", rows: "DataFrame", entries: "list[ledger.Entry]"
) -> "list[ledger.Entry]":
    """The entries of which bronze has fewer rows than they wrote."""
    ranges = [(e.seq, r.partition, r.start, r.end) for e in entries for r in e.ranges if r.size]
    if not ranges:
        return []
    by_entry = spark.createDataFrame(ranges, "seq BIGINT, p INT, low BIGINT, high BIGINT")
    inside = (F.col("partition") == F.col("p")) & (F.col("offset") >= F.col("low")) & (F.col("offset") < F.col("high"))
    counts = rows.join(F.broadcast(by_entry), inside).groupBy("seq").count().collect()
    present = {row["seq"]: row["count"] for row in counts}
    return [entry for entry in entries if present.get(entry.seq, 0) < entry.rows]


def _check_log(settings: "Settings", ranges: list[Range]) -> None:
    log = topic_offsets(settings, ranges[0].topic)
    for r in ranges:
        first, last = log.partitions.get(r.partition, (0, 0))
        if log.topic_id != r.topic_id or r.start < first or r.end > last:
            raise DataLoss(
                f"{r.topic}-{r.partition}: of offsets [{r.start}, {r.end}) bronze has lost rows, and Kafka only has "
                f"[{first}, {last}) of topic id {log.topic_id}. Restore bronze's files from a backup."
            )


def shadow_silver(spark: "SparkSession", settings: "Settings", plan: Plan, part: Part, replay: str) -> ShadowedSilver:
    """Parse and classify the rows of bronze again. The shadow of silver is written last, and says that both shadows are whole."""
    contract = CONTRACTS[part.stream]
    tables = Tables.of(contract)
    table = shadow_of(tables.log, replay)
    if known := shadow_result(settings, table, ShadowedSilver):
        return known
    raw = lake.read(spark, settings, tables.bronze).where(to_where(part.ranges))
    if "bronze" in plan.layers:
        raw = raw.unionByName(lake.read(spark, settings, shadow_of(tables.bronze, replay)))
    log = lake.read(spark, settings, tables.log)
    rows = _classified(spark, settings, contract, part, raw, log).persist()
    try:
        new, old = counted(rows), _counts_now(spark, settings, tables, part, log)
        # Every row that is not a marker was in silver, in quarantine, or a duplicate; what a marker is has not changed, and an
        # erasure has counted what it erased.
        old["duplicates"] = sum(new.values()) - new["markers"] - new.get(ERASED, 0) - sum(old.values())
        delta = {outcome: new[outcome] - old.get(outcome, new[outcome]) for outcome in new}
        shadow = ShadowedSilver(ranges=part.ranges, counts=new, delta=delta)
        bad = rows.where("_outcome = 'quarantined'").withColumn("_run_id", F.lit(replay))
        quarantined = bad.select(*QUARANTINE)
        write_shadow(spark, settings, shadow_of(tables.quarantine, replay), quarantined, shadow)
        good = rows.where("_outcome = 'silver'").select(*log_columns(contract))
        write_shadow(spark, settings, table, good, shadow)
    finally:
        rows.unpersist()
    return shadow


def _classified(
    spark: "SparkSession", settings: "Settings", contract: Contract, part: Part, raw: "DataFrame", log: "DataFrame"
) -> "DataFrame":
    """Each row with its outcome, decided in the order in which the runs of refine took the rows."""
    # The run before the first one, too: it says which times the partitions had reached.
    wider = [Range(r.topic, r.topic_id, r.partition, max(r.start - 1, 0), r.end) for r in part.ranges]
    entries = [run.entry for run in runs_of(settings, Tables.of(contract).log, "_arrival", wider)]
    ranges = [(e.seq, r.partition, r.start, r.end) for e in entries for r in e.ranges if overlap((r,), part.ranges)]
    by_run = spark.createDataFrame(ranges, "_run BIGINT, p INT, low BIGINT, high BIGINT")
    inside = F.expr("_partition = p AND _offset >= low AND _offset < high")
    newest = newest_at(entries, {r.partition: r.start for r in part.ranges})
    writers = writers_of(settings, contract, headers(raw, contract))
    parsed = silver_rows(raw, contract, newest, writers).join(F.broadcast(by_run), inside).drop("p", "low", "high")
    before = [Range(r.topic, r.topic_id, r.partition, 0, r.start) for r in part.ranges]
    earlier = remembered(log.where(to_where(before, *_POSITION)), oldest_of(raw), contract)
    return classify(parsed, earlier, contract, order=("_run", *_POSITION)).drop("_run")


def _counts_now(
    spark: "SparkSession", settings: "Settings", tables: Tables, part: Part, log: "DataFrame"
) -> dict[str, int]:
    """How many rows of the ranges silver and quarantine have now."""
    counts = {"silver": log.where(part.where).count(), "quarantined": 0}
    if lake.exists(settings, tables.quarantine):
        counts["quarantined"] = lake.read(spark, settings, tables.quarantine).where(part.where).count()
    return counts
