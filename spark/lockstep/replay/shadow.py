"""The shadow: what the current code makes of the interval, in tables that nobody reads. Every table is one commit.

A shadow that is there, and was made by this code, is not made again: so a stage that died goes on where it was.
"""

import time
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import bounded
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.columns import CHANGE, PROVENANCE
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.definition.view import BEGINNING
from lockstep.errors import DataLoss
from lockstep.ingest.offsets import topic_offsets
from lockstep.ingest.source import read_range
from lockstep.lake import Txn
from lockstep.ledger.ranges import Range, to_where
from lockstep.refine.parse import parse
from lockstep.refine.silver import classify, counted, remembered
from lockstep.replay.plan import Part, Plan, Span, Target, runs, touches
from lockstep.replay.tables import current, part_of, silver, version
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

_KEY = ("_partition", "_offset")


def build(spark: "SparkSession", settings: "Settings", plan: Plan, replay: str) -> dict[str, Any]:
    """Compute every shadow of the plan, upstream first.

    Returns:
        What was made: by stream ``holes`` and ``silver``, by view ``gold`` (each shadow's record), with ``code_version`` and
        ``seconds``.

    Raises:
        DataLoss: offsets that bronze has lost are gone from Kafka too.
    """
    began = time.monotonic()
    made: dict[str, Any] = {"holes": {}, "silver": {}, "gold": {}, "code_version": code_version()}
    for part in plan.parts:
        if "bronze" in plan.layers:
            made["holes"][part.stream] = _holes(spark, settings, part, replay)
        if part_of(plan, part.stream):
            made["silver"][part.stream] = _silver(spark, settings, plan, part, replay)
    for target in plan.targets:
        made["gold"][target.view] = _gold(spark, settings, plan, target, replay)
    return made | {"seconds": round(time.monotonic() - began, 1)}


def _made(settings: "Settings", table: str) -> Mapping[str, Any] | None:
    """The record of a shadow that this code has made."""
    found = next((c.record for c in lake.commits(settings, table) if "shadow" in c.record), None)
    return found["shadow"] if found and found["code_version"] == code_version() else None


def _make(spark: "SparkSession", settings: "Settings", table: str, rows: "DataFrame", shadow: dict[str, Any]) -> None:
    lake.drop(spark, settings, table)
    record = {"writer": "replay", "code_version": code_version(), "shadow": shadow}
    lake.append(rows, settings, table, Txn(f"shadow:{table}", 1), record)


def _holes(spark: "SparkSession", settings: "Settings", part: Part, replay: str) -> dict[str, Any]:
    """Read from Kafka what bronze's ledger says that it has, but its rows do not show; rows that are there stay as they are."""
    bronze = Tables.of(CONTRACTS[part.stream]).bronze
    table = shadow_of(bronze, replay)
    if done := _made(settings, table):
        return dict(done)
    entries = [run.entry for run in runs(settings, bronze, "timestamp") if touches(run.entry.ranges, part.ranges)]
    rows = lake.read(spark, settings, bronze)
    lacking = _lacking(spark, rows, entries)
    ranges = [r for entry in lacking for r in entry.ranges if r.size]
    if ranges:
        _check_log(settings, ranges)
        held = rows.where(to_where(ranges)).select("partition", "offset")
        missing = read_range(spark, settings, ranges).join(held, ["partition", "offset"], "left_anti")
        rows = missing.select(*rows.columns)
    shadow = {"ranges": [r.as_dict() for r in ranges]}
    _make(spark, settings, table, rows if ranges else rows.where("false"), shadow)
    return shadow


def _lacking(spark: "SparkSession", rows: "DataFrame", entries: "list[ledger.Entry]") -> "list[ledger.Entry]":
    """The entries of which bronze has fewer rows than it was given."""
    spans = [(e.seq, r.partition, r.start, r.end) for e in entries for r in e.ranges if r.size]
    if not spans:
        return []
    known = spark.createDataFrame(spans, "seq BIGINT, p INT, low BIGINT, high BIGINT")
    inside = (F.col("partition") == F.col("p")) & (F.col("offset") >= F.col("low")) & (F.col("offset") < F.col("high"))
    found = rows.join(F.broadcast(known), inside).groupBy("seq").count().collect()
    present = {row["seq"]: row["count"] for row in found}
    return [entry for entry in entries if present.get(entry.seq, 0) < entry.rows]


def _check_log(settings: "Settings", ranges: list[Range]) -> None:
    held = topic_offsets(settings, ranges[0].topic)
    for r in ranges:
        first, last = held.partitions.get(r.partition, (0, 0))
        if held.topic_id != r.topic_id or r.start < first or r.end > last:
            raise DataLoss(
                f"{r.topic}-{r.partition}: of offsets [{r.start}, {r.end}) bronze has lost rows, and Kafka only has "
                f"[{first}, {last}) of topic id {held.topic_id}. Restore bronze's files from a backup."
            )


def _silver(spark: "SparkSession", settings: "Settings", plan: Plan, part: Part, replay: str) -> dict[str, Any]:
    contract = CONTRACTS[part.stream]
    tables = Tables.of(contract)
    table = shadow_of(tables.log, replay)
    if done := _made(settings, table):
        return dict(done)
    raw = lake.read(spark, settings, tables.bronze).where(to_where(part.ranges))
    if "bronze" in plan.layers:
        raw = raw.unionByName(lake.read(spark, settings, shadow_of(tables.bronze, replay)))
    log = lake.read(spark, settings, tables.log)
    rows = _classified(spark, settings, contract, part, raw, log).persist()
    try:
        new, old = counted(rows), _before(spark, settings, tables, part, log)
        bad = rows.where("_outcome = 'quarantined'").withColumn("_run_id", F.lit(replay))
        quarantine = bad.select(*PROVENANCE, "_reason", "_key", "_value", "_run_id")
        _make(spark, settings, shadow_of(tables.quarantine, replay), quarantine, {"rows": new["quarantined"]})
        extra = CHANGE if contract.kind == "changes" else ()
        fresh = rows.where("_outcome = 'silver'").select(*contract.columns, *PROVENANCE, *extra)
        # What is neither data nor bad was a duplicate before, as what a heartbeat is has not changed.
        old["duplicates"] = sum(new.values()) - new["markers"] - sum(old.values())
        delta = {outcome: new[outcome] - old.get(outcome, new[outcome]) for outcome in new}
        shadow = {"ranges": [r.as_dict() for r in part.ranges], "counts": new, "delta": delta}
        _make(spark, settings, table, fresh, shadow)
    finally:
        rows.unpersist()
    return shadow


def _classified(
    spark: "SparkSession", settings: "Settings", contract: Contract, part: Part, raw: "DataFrame", log: "DataFrame"
) -> "DataFrame":
    """What becomes of each row, decided in the order in which the runs of refine took them."""
    entries = [run.entry for run in runs(settings, Tables.of(contract).log, "_arrival")]
    spans = [(e.seq, r.partition, r.start, r.end) for e in entries for r in e.ranges if touches((r,), part.ranges)]
    known = spark.createDataFrame(spans, "_run BIGINT, p INT, low BIGINT, high BIGINT")
    parsed = parse(raw, contract).join(
        F.broadcast(known), F.expr("_partition = p AND _offset >= low AND _offset < high")
    )
    before = [Range(r.topic, r.topic_id, r.partition, 0, r.start) for r in part.ranges]
    earlier = remembered(log.where(to_where(before, *_KEY)), raw, contract)
    return classify(parsed.drop("p", "low", "high"), earlier, contract, order=("_run", *_KEY)).drop("_run")


def _before(
    spark: "SparkSession", settings: "Settings", tables: Tables, part: Part, log: "DataFrame"
) -> dict[str, int]:
    """How many rows of the interval silver and quarantine have now."""
    found = {"silver": log.where(part.where).count(), "quarantined": 0}
    if lake.exists(settings, tables.quarantine):
        found["quarantined"] = lake.read(spark, settings, tables.quarantine).where(part.where).count()
    return found


def _gold(spark: "SparkSession", settings: "Settings", plan: Plan, target: Target, replay: str) -> dict[str, Any]:
    view = VIEWS[target.view]
    table = shadow_of(gold_of(view), replay)
    if made := _made(settings, table):
        return dict(made)
    at = version(settings, gold_of(view))
    done = current(settings, gold_of(view))
    rows = silver(spark, settings, plan, replay, view, done)
    span = _span(spark, settings, plan, target, replay, done)
    shadow: dict[str, Any] = {"span": None, "version": at, "ranges": [r.as_dict() for r in done.ranges]}
    if span is None:
        _make(spark, settings, table, lake.read(spark, settings, gold_of(view)).where("false"), shadow)
        return shadow
    shadow["span"] = [moment.isoformat() for moment in span]
    _make(spark, settings, table, result(view.with_late() if plan.late else view, rows, *span), shadow)
    return shadow


def _span(
    spark: "SparkSession", settings: "Settings", plan: Plan, target: Target, replay: str, done: ledger.Entry
) -> Span | None:
    """What of the view is computed again: what was asked for, and all that rows touch which silver has otherwise now."""
    view = VIEWS[target.view]
    spans = [target.span] if target.span else []
    for stream, happened in view.times.items():
        part = next((part for part in plan.parts if part.stream == stream), None)
        if part is None:
            continue
        rows = lake.read(spark, settings, Tables.of(CONTRACTS[stream]).log).where(part.where)
        if part_of(plan, stream):
            new = lake.read(spark, settings, shadow_of(Tables.of(CONTRACTS[stream]).log, replay))
            rows = rows if target.span is None else rows.exceptAll(new.select(*rows.columns))
            rows = rows.unionByName(new if target.span is None else _unlike(spark, settings, part, new))
        elif target.span:
            continue
        if found := _extent(view, rows, happened or "_arrival"):
            spans.append(found)
    if not spans:
        return None
    if view.upserts:
        # It is written as a whole, as far as it goes.
        return BEGINNING, bounded(view, done, BEGINNING, BEGINNING)[1]
    low, high = bounded(view, done, min(s[0] for s in spans), max(s[1] for s in spans))
    return (low, high) if low < high else None


def _unlike(spark: "SparkSession", settings: "Settings", part: Part, new: "DataFrame") -> "DataFrame":
    old = lake.read(spark, settings, Tables.of(CONTRACTS[part.stream]).log).where(part.where)
    return new.exceptAll(old.select(*new.columns))


def _extent(view: View, rows: "DataFrame", happened: str) -> Span | None:
    """The windows, or instants, that any of the rows can show in."""
    found = rows.agg(F.min(F.expr(happened)).alias("first"), F.max(F.expr(happened)).alias("last")).collect()[0]
    if found["first"] is None:
        return None
    first, last = (found[name].replace(tzinfo=UTC) for name in ("first", "last"))
    return view.touched_by(first, last)


def shadow_rows(spark: "SparkSession", settings: "Settings", table: str, replay: str) -> "DataFrame":
    """What the shadow of ``layer.name`` holds."""
    return lake.read(spark, settings, shadow_of(table, replay))


def taken(made: Mapping[str, Any]) -> list[Range]:
    """The position of gold that a shadow was computed at."""
    return [Range(**r) for r in made["ranges"]]
