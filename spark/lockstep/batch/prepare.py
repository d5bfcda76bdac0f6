"""What roll-ups need before they write: their plans, the sums of the new rows, and the new events of machines.

Each job of Spark costs a third of a second of CPU, whatever it computes. With 25 views and a minute of records, most of what gold
cost was 50 such jobs. So a few new rows of a stream are read once for all views, without Spark, and one job finds the events of
all keyed views.

Nothing is locked here. A roll-up uses what was prepared only if gold is still where its plan begins.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from lockstep import lake, ledger
from lockstep.batch.new_events import MOST_ROWS_TOGETHER, Wanted, may_have, new_events
from lockstep.batch.plan import Intake, Plan, plan
from lockstep.batch.summary import Summary, summary_of_few
from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import log_columns
from lockstep.definition.tables import gold_of
from lockstep.errors import LockstepError
from lockstep.lake import small_commits
from lockstep.ledger.ranges import to_where
from lockstep.session import collect, to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import Keyed, View
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """What the roll-up of a view needs.

    Args:
        summary: of the new rows; None: they are many, or only Spark knows when they happened.
        events: the new events of its machines, as :func:`~lockstep.batch.new_events.new_events` gives them; None: not asked for.
    """

    plan: Plan
    summary: Summary | None
    events: pa.Table | None = None


@dataclass
class NewRows:
    """New rows of silver, each read once."""

    settings: "Settings"
    _read: dict[tuple[object, ...], pa.Table] = field(default_factory=dict)

    def of(self, intake: Intake, columns: tuple[str, ...], where: str = "") -> pa.Table:
        """The columns of the rows that an intake takes, or of those that match ``where`` (SQL that DataFusion knows)."""
        source, where = intake.source, where or to_where(intake.ranges, "_partition", "_offset")
        key = (source.table, source.version, where, columns)
        if key not in self._read:
            self._read[key] = small_commits.collect(self.settings, source.table, where, columns, source.version)
        return self._read[key]


def prepare(
    settings: "Settings", views: "Iterable[View]", connect: "Callable[[], AbstractContextManager[SparkSession]]"
) -> dict[str, Prepared]:
    """Prepare the roll-ups of several views, by view. A view that has nothing new, or that cannot be prepared, is left out.

    Args:
        connect: opens a session, if there are events to find together.
    """
    rows, prepared = NewRows(settings), dict[str, Prepared]()
    chosen = {view.name: view for view in views}
    for name, view in chosen.items():
        try:
            found = prepare_view(view, ledger.latest(settings, gold_of(view)), rows)
        except (LockstepError, DeltaError) as error:
            # Its own roll-up meets the same, and reports it.
            log.info("%s is not prepared: %s", name, error)
            continue
        if found:
            prepared[name] = found
    keyed = (cast("Keyed", chosen[name]) for name, one in prepared.items() if _goes_on(chosen[name], one.plan))
    groups = _groups(wanted(view, prepared[view.name].plan) for view in keyed)
    if groups:
        with connect() as spark:
            for group in groups:
                found_together = _events(spark, rows, group, prepared)
                prepared |= {name: replace(prepared[name], events=events) for name, events in found_together.items()}
    return prepared


def _events(
    spark: "SparkSession", rows: NewRows, group: Sequence[Wanted], prepared: Mapping[str, Prepared]
) -> dict[str, pa.Table]:
    """By view, the new events of a group."""
    names = [one.view.name for one in group]
    try:
        silver = _silver(spark, rows, group, [prepared[name].plan for name in names])
        events = collect(new_events(group, silver))
    except (PySparkException, DeltaError) as error:
        # For this, one view's expressions or one table are enough. Each roll-up asks for its own events then.
        log.warning("The events of %s were not found together: %s", ", ".join(names), error)
        return {}
    return {name: events.filter(pc.field("_view") == name) for name in names}


def _silver(
    spark: "SparkSession", rows: NewRows, group: Sequence[Wanted], plans: Sequence[Plan]
) -> "dict[str, DataFrame]":
    """By stream, rows of silver with all new events of a group: read without Spark where they are few.

    To open a table and to choose its files costs Spark more than to process some hundred rows.
    """
    intakes = {intake.stream: intake for planned in plans for intake in planned.intakes}
    few = all(lake.is_small(planned.size) for planned in plans)
    found = {}
    for stream, intake in intakes.items():
        columns = (*log_columns(CONTRACTS[stream]),)
        if few and all(read.time in columns for one in group for read in one.view.inputs if read.stream == stream):
            found[stream] = to_dataframe(spark, rows.of(intake, columns, may_have(stream, group)))
        else:
            found[stream] = lake.read(spark, rows.settings, intake.source.table, intake.source.version)
    return found


def prepare_view(view: "View", newest: ledger.Entry | None, rows: NewRows) -> Prepared | None:
    """Prepare the roll-up that follows an entry of gold, without its events; None: nothing is new."""
    planned = plan(rows.settings, view, newest)
    return Prepared(planned, _summary(view, planned, rows)) if planned else None


def wanted(view: "Keyed", planned: Plan) -> Wanted:
    """The new events of a view's roll-up."""
    versions = {intake.stream: intake.source.version for intake in planned.intakes}
    return Wanted(view, planned.ranges, planned.low, planned.until, versions)


def _summary(view: "View", planned: Plan, rows: NewRows) -> Summary | None:
    if not lake.is_small(planned.size):
        return None
    times, by_stream = view.times, dict[str, pa.Table]()
    for intake in planned.intakes:
        time = times[intake.stream]
        # The time of an input may be any expression of Spark's.
        if time and time not in log_columns(CONTRACTS[intake.stream]):
            return None
        by_stream[intake.stream] = rows.of(intake, (*view.arrived_by, time) if time else ("_arrival",))
    return summary_of_few(view, by_stream, planned.low)


def _goes_on(view: "View", planned: Plan) -> bool:
    """Whether machines will process a few new events: they are saved, or too few are new to compute gold from history."""
    saved = planned.newest is not None and planned.newest.machines is not None
    few = planned.size <= MOST_ROWS_TOGETHER
    return view.keeps_until and few and (saved or (lake.is_small(planned.size) and not view.upserts))


def _groups(views: Iterable[Wanted]) -> list[list[Wanted]]:
    """Those that fit together. One that is alone asks for itself, beside the others."""
    groups: list[list[Wanted]] = []
    for one in views:
        together = next((group for group in groups if all(map(one.fits, group))), None)
        if together is None:
            groups.append([one])
        else:
            together.append(one)
    return [group for group in groups if len(group) > 1]
