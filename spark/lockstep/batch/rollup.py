"""Run a view as a batch job: recompute an interval of gold from silver, and replace what was there.

Gold is always the view over exactly the silver rows before the position in its ledger, in however many runs it was computed. Its
rows are final before ``until``: the watermark that every partition has passed, less the lateness. Of a keyed view, gold has no
others.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from lockstep import lake, ledger
from lockstep.batch import going_on, late
from lockstep.batch.compute import result
from lockstep.batch.new_events import new_events
from lockstep.batch.plan import Plan
from lockstep.batch.prepare import NewRows, Prepared, prepare_view, wanted
from lockstep.batch.summary import Summary, summary
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.trial import ensure
from lockstep.definition.version import definition_version
from lockstep.definition.view import BEGINNING, Interval
from lockstep.ledger.ranges import to_where, where_below
from lockstep.session import collect
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import Keyed
    from lockstep.settings import Settings


def roll_up(
    spark: "SparkSession", settings: "Settings", view: View, run_id: str, prepared: Prepared | None = None
) -> ledger.Entry | None:
    """Recompute the rows of gold that silver's new rows change.

    Args:
        prepared: what :func:`~lockstep.batch.prepare.prepare` found for the view. If gold has changed since, it is found again.

    Returns:
        The new entry, whose counts add up to the silver rows taken (``silver = counted + ignored + side_output``), or None when
        there was nothing new, or one of the view's streams has no silver yet.

    Raises:
        ViewRefused: the view cannot run in one of the layers.
        Overtaken: the write of a run that has died came first.
    """
    table = gold_of(view)
    with lease(settings, table, run_id):
        newest = ledger.latest(settings, table)
        if newest:
            follow_columns(spark, settings, view, newest)
        if prepared is None or prepared.plan.newest != newest:
            prepared = prepare_view(view, newest, NewRows(settings))
        if prepared is None:
            return None
        if newest is None or newest.code_version != code_version():
            ensure(spark, view)
            with lease(settings, lake.CATALOG, run_id):
                late.define(spark, settings, view)
        if newest is None:
            lake.create(spark, settings, table, view.output_columns, properties=ledger.RETENTION)
        plan, silver = prepared.plan, prepared.plan.silver(spark, settings)
        new = prepared.summary or summary(view, _new(plan, silver), plan.low)
        span = _touched(view, new, plan)
        record = ledger.record(
            "rollup",
            newest,
            run_id,
            [r for intake in plan.intakes for r in intake.ranges],
            mixed=newest is not None and not ledger.untouched(settings, newest),
            counts=new.counts,
            sources={intake.source.table: intake.source.version for intake in plan.intakes},
            until=plan.until.isoformat(),
            **written_as(view, span),
        )
        if view.keeps_until:
            keyed, events = cast("Keyed", view), prepared.events
            going_on.roll_up(
                settings,
                keyed,
                plan,
                silver,
                lambda: events if events is not None else collect(new_events([wanted(keyed, plan)], silver)),
                record,
            )
        else:
            _replace(silver, settings, view, span, record, few=lake.is_small(plan.size))
        return ledger.committed(settings, table, record)


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

    Raises:
        Overtaken: the write of a run that has died came first, and the interval was not computed again.
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
        return ledger.committed(settings, table, record)


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


def _new(plan: Plan, silver: "Mapping[str, DataFrame]") -> "dict[str, DataFrame]":
    return {stream: silver[stream].where(to_where(of, "_partition", "_offset")) for stream, of in plan.ranges.items()}


def _touched(view: View, new: Summary, plan: Plan) -> Interval | None:
    if not view.keeps_until:
        return view.touched_by(new.first, new.last) if new.first and new.last else None
    return (plan.low, plan.until) if plan.low < plan.until or view.upserts else None


def written_as(view: View, span: Interval | None) -> dict[str, Any]:
    """What a commit records about the rows that it writes: the version of their definition, and their interval."""
    return {"definition": definition_version(view), "span": [at.isoformat() for at in span] if span else None}


def _replace(
    silver: "Mapping[str, DataFrame]",
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
    lake.replace(collect(rows) if few else rows, settings, table, view.interval(*span), txn, record)
