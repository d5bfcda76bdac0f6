"""Carry out a request for an action on checkpoints. Each action returns outcomes of its own type; printing one gives its text."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lockstep.checkpoints import compatible, forks, inspection, resets, together
from lockstep.checkpoints.compatible import Verdict
from lockstep.checkpoints.fields import Action
from lockstep.checkpoints.forks import Fork, Restore
from lockstep.checkpoints.form import Request
from lockstep.checkpoints.inspection import StateStore
from lockstep.checkpoints.overview import Overview, overview
from lockstep.checkpoints.resets import Reset
from lockstep.checkpoints.savepoints import Savepoint
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.checkpoints.verify import Finding, Whole, verify_query
from lockstep.definition import View
from lockstep.definition.registry import VIEWS, chosen
from lockstep.live import generations
from lockstep.session import connect

if TYPE_CHECKING:
    from lockstep.settings import Settings

Outcome = Overview | Whole | Finding | StateStore | Verdict | Savepoint | Restore | Reset | Fork


def carry_out(settings: "Settings", request: Request, run_id: str | None = None) -> Sequence[Outcome]:
    """Carry out the action, and return an outcome for each thing that was found or done.

    Args:
        run_id: the run that asks; when the same run asks again, nothing more is changed.

    Raises:
        LockstepError: the action was refused; the message says why.
    """
    views = [request.query] if request.query else chosen(settings.views)
    match request.action:
        case Action.LIST:
            return overview(settings, views)
        case Action.VERIFY:
            return [outcome for view in views for outcome in verify_query(settings, view)]
        case Action.INSPECT:
            return _inspect(settings, request.one_query)
        case Action.COMPATIBLE:
            return _compatible(settings, views)
        case Action.SAVEPOINT:
            return [_savepoint(settings, request, run_id)]
        case Action.RESTORE:
            return [forks.restore(settings, request.one_query, request.name, request.reason, request.by, run_id)]
        case Action.RESET:
            return [_reset(settings, request, run_id)]
        case Action.FORK:
            return [_fork(settings, request, run_id)]
        case Action.SHARE:
            return _share(settings, request, run_id)


def keeps_query_from_starting(outcome: Outcome) -> bool:
    """Whether the outcome says that a query cannot start: its checkpoint is broken, or the query has changed too much."""
    match outcome:
        case Finding():
            return not outcome.repairable
        case Verdict():
            return not outcome.resumes
        case _:
            return False


def _inspect(settings: "Settings", view: View) -> list[StateStore]:
    with connect(settings, "checkpoints") as spark:
        return inspection.state_stores(spark, settings, view)


def _compatible(settings: "Settings", views: Iterable[View]) -> list[Verdict]:
    with connect(settings, "checkpoints") as spark:
        return [compatible.verdict(spark, settings, view) for view in views]


def _savepoint(settings: "Settings", request: Request, run_id: str | None) -> Savepoint:
    generation = generations.get(settings, request.one_query.name)
    with connect(settings, "checkpoints") as spark:
        return take_savepoint(spark, settings, generation, request.name, request.by, request.reason, run_id)


def _reset(settings: "Settings", request: Request, run_id: str | None) -> Reset:
    with connect(settings, "checkpoints") as spark:
        plan = resets.plan(spark, settings, request.one_query, request.to)
    return resets.reset(settings, plan, request.reason, request.by, run_id)


def _fork(settings: "Settings", request: Request, run_id: str | None) -> Fork:
    origin, changed = request.one_query, VIEWS[request.name]
    with connect(settings, "checkpoints") as spark:
        return forks.fork(spark, settings, origin, changed, request.reason, request.by, run_id)


def _share(settings: "Settings", request: Request, run_id: str | None) -> list[Reset]:
    with connect(settings, "checkpoints") as spark:
        plans = together.plan_together(spark, settings, chosen(settings.views))
    return together.begin_together(settings, plans, request.reason, request.by, run_id)
