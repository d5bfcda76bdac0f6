"""Take the records out of the live layer: views begin anew without them, from gold or from Kafka, and old state is removed.

The queries of the views must not run meanwhile. Those of the same job begin anew too, because they share its state.
"""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.batch.saved_machines import location
from lockstep.checkpoints import journal
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.resets import EARLIEST, GOLD, ResetPlan, plan, reset
from lockstep.checkpoints.savepoints import savepoint_location
from lockstep.checkpoints.together import begin_together
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import live_of
from lockstep.erase.streams import run_id, txn
from lockstep.live import generations, seeds
from lockstep.live.generation import Generation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from lockstep.control.erased import Erasure
    from lockstep.definition import View
    from lockstep.settings import Settings


def affected(settings: "Settings", streams: "Mapping[str, object]") -> "list[View]":
    """The views whose live queries have read one of these streams, and those that share a job with one of them."""
    known = generations.all_current(settings)
    ran = [v for v in VIEWS.values() if v.name in known or lake.exists(settings, live_of(v))]
    jobs = {known.get(v.name, Generation(v.name)).job for v in ran if {*v.streams} & streams.keys()}
    return [v for v in ran if known.get(v.name, Generation(v.name)).job in jobs]


def begin_anew(
    spark: "SparkSession", settings: "Settings", views: "Iterable[View]", erasure: "Erasure", reason: str
) -> "list[View]":
    """Have each view begin a new generation without the erased records, and empty its table until then.

    Views that may share a job do so from now on, whatever they did before: a job for each of them would cost too much.

    The caller holds the leases ``checkpoint:<view>``, and gold is free of erased records.

    Returns:
        The views that began anew. Those that have no live table, and no checkpoint, have nothing to forget.
    """
    begins = [v for v in views if lake.exists(settings, live_of(v)) or generations.newest_checkpoint(settings, v.name)]
    plans = [(view, _plan(spark, settings, view)) for view in begins]
    together = [planned for view, planned in plans if view.may_share]
    begin_together(settings, together, reason, erasure.by, run_id(erasure))
    for _, planned in plans:
        if planned not in together:
            reset(settings, planned, reason, erasure.by, run_id(erasure))
    for view in begins:
        if lake.exists(settings, live_of(view)):
            rows = lake.read(spark, settings, live_of(view)).where("false")
            record = {"writer": "erase", "erasure": erasure.number}
            lake.replace(rows, settings, live_of(view), "true", txn(live_of(view), erasure), record)
    return begins


def _plan(spark: "SparkSession", settings: "Settings", view: "View") -> ResetPlan:
    try:
        return plan(spark, settings, view, GOLD if view.has_machines else EARLIEST)
    except ActionRefused:
        if view.needs_all_history:
            raise
        # What is before the log's first record, gold has; serving takes it from there.
        return ResetPlan(view.name, {}, None)


def remove_old_state(settings: "Settings", views: "Sequence[View]") -> None:
    """Remove the checkpoints of their earlier jobs, their savepoints, and machines that no generation begins with."""
    for job in generations.earlier_jobs_of(settings, [view.name for view in views]):
        lake.remove(job.location(settings))
        journal.forget(settings, job)
    current = generations.all_current(settings)
    for view in views:
        lake.remove(savepoint_location(settings, view.name))
        seed = current[view.name].seed if view.name in current else None
        if lake.size(location(settings, view.name, f"_checkpoints/{seeds.SEEDS}")):
            seeds.copies(settings, view.name).remove_all_but([seed.copy if seed else None])
