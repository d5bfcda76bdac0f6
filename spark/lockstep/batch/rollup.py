"""Run a view as a batch job: recompute an interval of it from silver, and put it in the place of what was there.

Gold is always the view over exactly the silver rows below the position in its ledger, however it was reached. A keyed view's
rows are those of the instants before its ``until``: the moment that every partition's log had passed, less the lateness.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch import late
from lockstep.batch.compute import result
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.trial import ensure
from lockstep.definition.version import definition_version
from lockstep.definition.view import BEGINNING, Interval
from lockstep.ledger.event_time import reached
from lockstep.ledger.ranges import Range, ends, size, to_where
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

PROPERTIES = {
    "delta.setTransactionRetentionDuration": "interval 400 days",
    "delta.logRetentionDuration": "interval 400 days",
}


@dataclass(frozen=True)
class Intake:
    """What a run takes of one stream: silver's entry, and the ranges that gold has not seen."""

    stream: str
    source: ledger.Entry
    ranges: tuple[Range, ...]


def roll_up(spark: "SparkSession", settings: "Settings", view: View, run_id: str) -> ledger.Entry | None:
    """Bring gold up to silver: recompute what the new rows touch.

    Returns:
        The new entry, whose counts add up to the silver rows taken (``silver = counted + ignored + side_output``), or None when
        there was nothing new, or one of the view's streams has no silver yet.

    Raises:
        ViewRefused: the view cannot run in one of the layers.
    """
    table = gold_of(view)
    with lease(settings, table, run_id):
        done = ledger.latest(settings, table)
        taken = _take(settings, view, done)
        if taken is None or not any(size(one.ranges) for one in taken):
            return None
        if done is None or done.code_version != code_version():
            ensure(spark, view)
            with lease(settings, late.CATALOG, run_id):
                late.define(spark, view)
        if done is None:
            lake.create(spark, settings, table, view.output_columns, properties=PROPERTIES)
        silver = {one.stream: lake.read(spark, settings, one.source.table, one.source.version) for one in taken}
        new = summary(view, {t.stream: silver[t.stream].where(_new(t)) for t in taken})
        until = _until(settings, view, taken, done)
        span = _touched(view, new, done, until)
        record = ledger.record(
            "rollup",
            done,
            run_id,
            [r for one in taken for r in one.ranges],
            mixed=done is not None and not ledger.untouched(settings, done),
            counts=new["counts"],
            sources={one.source.table: one.source.version for one in taken},
            until=until.isoformat() if until else None,
            **written_as(view, span),
        )
        _replace(silver, settings, view, span, record)
        return ledger.latest(settings, table)


def rebuild(
    spark: "SparkSession", settings: "Settings", view: View, start: datetime, end: datetime, run_id: str
) -> ledger.Entry | None:
    """Recompute the interval ``[start, end)`` (UTC), from the silver rows that gold already covers.

    Returns:
        The new entry, or None where there is nothing to redo: the view has no gold yet, and the next ``roll_up`` covers all of
        it; or this very code has written all of gold, and nobody else.
    """
    table = gold_of(view)
    with lease(settings, table, run_id):
        done = ledger.latest(settings, table)
        if done is None or ledger.by_this_code(settings, done):
            return None
        silver = {stream: covered(spark, settings, stream, done) for stream in view.streams}
        still = [Range(r.topic, r.topic_id, r.partition, r.end, r.end) for r in done.ranges]
        span = bounded(view, done, start, end)
        written = written_as(view, span)
        record = ledger.record("rollup", done, run_id, still, mixed=True, counts={}, until=done.until, **written)
        _replace(silver, settings, view, span, record)
        return ledger.latest(settings, table)


def covered(spark: "SparkSession", settings: "Settings", stream: str, done: ledger.Entry) -> "DataFrame":
    """The rows of a stream's silver log that an entry of gold covers."""
    topic = CONTRACTS[stream].topic
    position = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in done.ranges if r.topic == topic]
    silver = lake.read(spark, settings, Tables.of(CONTRACTS[stream]).log)
    return silver.where(to_where(position, "_partition", "_offset"))


def bounded(view: View, done: ledger.Entry, start: datetime, end: datetime) -> Interval:
    """The interval as far as gold is final: a keyed view has no rows from its ``until`` on."""
    until = datetime.fromisoformat(done.until) if done.until else BEGINNING
    return view.bounded(start.astimezone(UTC), end.astimezone(UTC), until)


def _take(settings: "Settings", view: View, done: ledger.Entry | None) -> list[Intake] | None:
    taken = []
    for stream in view.streams:
        source = ledger.latest(settings, Tables.of(CONTRACTS[stream]).log)
        if source is None:
            return None
        taken.append(Intake(stream, source, tuple(ledger.pending(settings, source, done, 1 << 62))))
    return taken


def _new(taken: Intake) -> str:
    return to_where(taken.ranges, "_partition", "_offset")


def _until(settings: "Settings", view: View, taken: list[Intake], done: ledger.Entry | None) -> datetime | None:
    """The instant before which a keyed view is final at the new position; it never goes back."""
    if not view.keeps_until:
        return None
    before = datetime.fromisoformat(done.until) if done and done.until else BEGINNING
    events = [one for one in taken if CONTRACTS[one.stream].kind == "events"]
    bronze = [ledger.entries(settings, Tables.of(CONTRACTS[one.stream]).bronze) for one in events]
    passed = [reached(entries, ends(one.ranges)) for entries, one in zip(bronze, events, strict=True)]
    known = [time for time in passed if time is not None]
    return max(before, min(known) - view.limit) if known and len(known) == len(passed) else before


def _touched(view: View, new: dict[str, Any], done: ledger.Entry | None, until: datetime | None) -> Interval | None:
    if not view.keeps_until:
        return view.touched_by(new["first"], new["last"]) if new["first"] else None
    low = datetime.fromisoformat(done.until) if done and done.until else BEGINNING
    until = until or BEGINNING
    return (low, until) if low < until or view.upserts else None


def summary(view: View, rows: "dict[str, DataFrame]") -> dict[str, Any]:
    """How the new rows divide, and between which instants those lie that count."""
    late = "side_output" if view.policy == "side_output" else "ignored"
    counts = {"counted": 0, "ignored": 0, "side_output": 0}
    first, last = None, None
    for stream, time in view.times.items():
        counted = F.expr(view.counts(time) if time else "true")
        instant = F.when(counted, F.expr(time or "_arrival"))
        found = rows[stream].agg(
            F.count_if(counted).alias("counted"),
            F.count_if(~counted).alias("late"),
            F.min(instant).alias("first"),
            F.max(instant).alias("last"),
        )
        row = found.collect()[0]
        counts["counted"] += row["counted"]
        counts[late] += row["late"]
        first, last = row["first"], row["last"]
    return {"counts": counts, "first": first, "last": last}


def written_as(view: View, span: Interval | None) -> dict[str, Any]:
    """What a commit says of the rows that it puts in place: whose definition they follow, and of which interval they are."""
    # Spark hands out naive UTC.
    aware = [(m if m.tzinfo else m.replace(tzinfo=UTC)).isoformat() for m in span] if span else None
    return {"definition": definition_version(view), "span": aware}


def _replace(
    silver: "dict[str, DataFrame]", settings: "Settings", view: View, span: Interval | None, record: dict[str, Any]
) -> None:
    """Replace what lies in the interval; with none, commit the record alone."""
    table = gold_of(view)
    txn = ledger.txn(table, record)
    if span is None:
        nothing = result(view, {name: rows.where("false") for name, rows in silver.items()}, BEGINNING, BEGINNING)
        lake.append(nothing, settings, table, txn, record)
        return
    lake.replace(result(view, silver, *span), settings, table, view.interval(*span), txn, record)
