"""Run a view as a batch job: recompute an interval of gold from silver, and replace what was there.

Gold is always the view over exactly the silver rows before the position in its ledger, in however many runs it was computed. Its
rows are final before ``until``: the watermark that every partition has passed, less the lateness. Of a keyed view, gold has no
others.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch import going_on, late
from lockstep.batch.compute import result
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.trial import ensure
from lockstep.definition.version import definition_version
from lockstep.definition.view import BEGINNING, Interval, literal
from lockstep.ledger.event_time import watermark
from lockstep.ledger.ranges import Range, size, to_where, where_below
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import Keyed
    from lockstep.settings import Settings

_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Intake:
    """What a run takes from one stream: silver's newest entry, and the ranges that gold has not taken yet."""

    stream: str
    source: ledger.Entry
    ranges: tuple[Range, ...]


def roll_up(spark: "SparkSession", settings: "Settings", view: View, run_id: str) -> ledger.Entry | None:
    """Recompute the rows of gold that silver's new rows change.

    Returns:
        The new entry, whose counts add up to the silver rows taken (``silver = counted + ignored + side_output``), or None when
        there was nothing new, or one of the view's streams has no silver yet.

    Raises:
        ViewRefused: the view cannot run in one of the layers.
    """
    table = gold_of(view)
    with lease(settings, table, run_id):
        newest = ledger.latest(settings, table)
        taken = _take(settings, view, newest)
        if newest:
            follow_columns(spark, settings, view, newest)
        if taken is None or not any(size(intake.ranges) for intake in taken):
            return None
        if newest is None or newest.code_version != code_version():
            ensure(spark, view)
            with lease(settings, late.CATALOG, run_id):
                late.define(spark, view)
        if newest is None:
            lake.create(spark, settings, table, view.output_columns, properties=ledger.RETENTION)
        silver = {t.stream: lake.read(spark, settings, t.source.table, t.source.version) for t in taken}
        new = summary(view, {t.stream: silver[t.stream].where(_new(t)) for t in taken}, newest)
        until = _until(view, taken, newest)
        span = _touched(view, new, newest, until)
        record = ledger.record(
            "rollup",
            newest,
            run_id,
            [r for intake in taken for r in intake.ranges],
            mixed=newest is not None and not ledger.untouched(settings, newest),
            counts=new["counts"],
            sources={t.source.table: t.source.version for t in taken},
            until=until.isoformat(),
            **written_as(view, span),
        )
        if view.keeps_until:
            ranges = {t.stream: t.ranges for t in taken}
            going_on.roll_up(settings, cast("Keyed", view), newest, ranges, silver, until, record)
        else:
            few = lake.is_small(sum(size(intake.ranges) for intake in taken))
            _replace(silver, settings, view, span, record, few)
        return ledger.latest(settings, table)


def is_current(settings: "Settings", view: View) -> bool:
    """Whether this version of the code has computed all of the view's gold, and nobody else has written it."""
    newest = ledger.latest(settings, gold_of(view))
    return newest is not None and ledger.by_this_code(settings, newest)


def rebuild(
    spark: "SparkSession", settings: "Settings", view: View, start: datetime, end: datetime, run_id: str
) -> ledger.Entry | None:
    """Recompute the interval ``[start, end)`` (UTC) from the silver rows that gold already covers.

    Returns:
        The new entry, or None if the view has no gold yet: the next ``roll_up`` computes it.
    """
    table = gold_of(view)
    with lease(settings, table, run_id):
        newest = ledger.latest(settings, table)
        if newest is None:
            return None
        follow_columns(spark, settings, view, newest)
        silver = {stream: covered(spark, settings, stream, newest) for stream in view.streams}
        position = ledger.unchanged_position(newest)
        span = bounded(view, newest, start, end)
        written = written_as(view, span)
        until = newest.until.isoformat() if newest.until else None
        mixed = not ledger.by_this_code(settings, newest)
        record = ledger.record("rollup", newest, run_id, position, mixed=mixed, counts={}, until=until, **written)
        _replace(silver, settings, view, span, record)
        return ledger.latest(settings, table)


def follow_columns(spark: "SparkSession", settings: "Settings", view: View, newest: ledger.Entry) -> None:
    """Add the columns that a newer version of the view has to its gold. The caller holds the table's lease.

    Args:
        newest: gold's newest entry.

    Raises:
        ColumnsRefused: the view has other changes of its columns.
    """
    if newest.code_version != code_version():
        lake.create(spark, settings, gold_of(view), view.output_columns, properties=ledger.RETENTION)


def covered(spark: "SparkSession", settings: "Settings", stream: str, newest: ledger.Entry) -> "DataFrame":
    """The rows of a stream's silver log that an entry of gold covers."""
    contract = CONTRACTS[stream]
    return lake.read(spark, settings, Tables.of(contract).log).where(where_below(newest.ranges, contract.topic))


def bounded(view: View, newest: ledger.Entry, start: datetime, end: datetime) -> Interval:
    """The interval up to where gold is final: a keyed view has no rows after its ``until``."""
    return view.bounded(start.astimezone(UTC), end.astimezone(UTC), newest.until or BEGINNING)


def _take(settings: "Settings", view: View, newest: ledger.Entry | None) -> list[Intake] | None:
    taken = []
    for stream in view.streams:
        source = ledger.latest(settings, Tables.of(CONTRACTS[stream]).log)
        if source is None:
            return None
        taken.append(Intake(stream, source, tuple(ledger.pending(settings, source, newest, _NO_LIMIT))))
    return taken


def _new(taken: Intake) -> str:
    return to_where(taken.ranges, "_partition", "_offset")


def _until(view: View, taken: list[Intake], newest: ledger.Entry | None) -> datetime:
    """The instant before which the view is final at the new position. It never moves back."""
    before = (newest and newest.until) or BEGINNING
    events = [intake for intake in taken if CONTRACTS[intake.stream].kind == "events"]
    passed = [
        watermark(CONTRACTS[intake.stream], intake.source.newest, (r.partition for r in intake.ranges))
        for intake in events
    ]
    times = [time for time in passed if time is not None]
    return max(before, min(times) - view.limit) if times and len(times) == len(passed) else before


def _touched(view: View, new: dict[str, Any], newest: ledger.Entry | None, until: datetime) -> Interval | None:
    if not view.keeps_until:
        return view.touched_by(new["first"], new["last"]) if new["first"] else None
    low = (newest and newest.until) or BEGINNING
    return (low, until) if low < until or view.upserts else None


def summary(view: View, rows: "dict[str, DataFrame]", newest: ledger.Entry | None = None) -> dict[str, Any]:
    """How many of the new rows count, and the first and last instant of those that do.

    Args:
        newest: gold's newest entry. A machine cannot take an event from before its ``until`` any more. There is one only if its
            partition was added later, with records older than those of the others.
    """
    late = "side_output" if view.policy == "side_output" else "ignored"
    final = newest.until if newest and newest.until and view.keeps_until else BEGINNING
    by_stream = []
    for stream, time in view.times.items():
        counted = F.expr(f"{view.counts(time)} AND {time} >= {literal(final)}" if time else "true")
        instant = F.when(counted, F.expr(time or "_arrival"))
        by_stream.append(
            rows[stream].agg(
                F.count_if(counted).alias("counted"),
                F.count_if(~counted).alias("late"),
                F.min(instant).alias("first"),
                F.max(instant).alias("last"),
            )
        )
    found = reduce(lambda left, right: left.unionAll(right), by_stream).collect()
    counts = {"counted": 0, "ignored": 0, "side_output": 0}
    counts |= {"counted": sum(row["counted"] for row in found), late: sum(row["late"] for row in found)}
    return {
        "counts": counts,
        "first": min((row["first"] for row in found if row["first"]), default=None),
        "last": max((row["last"] for row in found if row["last"]), default=None),
    }


def written_as(view: View, span: Interval | None) -> dict[str, Any]:
    """What a commit records about the rows that it writes: the version of their definition, and their interval."""
    # Spark returns naive times in UTC.
    aware = [(m if m.tzinfo else m.replace(tzinfo=UTC)).isoformat() for m in span] if span else None
    return {"definition": definition_version(view), "span": aware}


def _replace(
    silver: "dict[str, DataFrame]",
    settings: "Settings",
    view: View,
    span: Interval | None,
    record: dict[str, Any],
    few: bool = False,
) -> None:
    """Replace the rows of the interval; without one, commit the record alone. Few rows are written without Spark."""
    table = gold_of(view)
    txn = ledger.txn(table, record)
    if span is None:
        lake.append_record(settings, table, txn, record)
        return
    rows = result(view, silver, *span)
    lake.replace(rows.toArrow() if few else rows, settings, table, view.interval(*span), txn, record)
