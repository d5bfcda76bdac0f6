"""Let views that have jobs of their own share jobs again. Each of them goes on from gold.

A view that was reset, restored or forked, or that could not run with the others for a while, has a job of its own. Spark cannot
write a state from outside, but a new one can begin with the machines of several views, or with windows that are not final yet.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.resets import GOLD, Reset, ResetPlan, plan, with_copy
from lockstep.definition.registry import VIEWS
from lockstep.live import generations
from lockstep.live.generation import Beginning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings


def plan_together(spark: "SparkSession", settings: "Settings", views: "Iterable[View]") -> list[ResetPlan]:
    """Plan from where in gold each view that may share a job would go on. It changes nothing.

    Raises:
        ActionRefused: none may share a job, or some cannot go on from gold.
    """
    sharing = [view for view in views if view.may_share]
    if not sharing:
        raise ActionRefused("None of the views that run may share a job: each needs its own.")
    plans, refused = [], []
    for view in sharing:
        try:
            plans.append(plan(spark, settings, view, GOLD))
        except ActionRefused as error:
            refused.append(str(error))
    if refused:
        raise ActionRefused("\n".join(refused))
    return plans


def begin_together(
    settings: "Settings", planned: Sequence[ResetPlan], reason: str, by: str, run_id: str | None = None
) -> list[Reset]:
    """Create the next generation of each view, in new jobs that they share. Whoever runs the queries switches to them.

    Args:
        planned: of views that may share a job.
    """
    copied = [with_copy(settings, one) for one in planned]
    begins = [Beginning(VIEWS[one.query], one.starts, one.since, one.seed) for one in copied]
    numbers = generations.advance_together(settings, begins, reason, by, run_id)
    return [Reset(one, numbers[one.query]) for one in copied]
