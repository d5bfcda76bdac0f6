"""**Live against batch.** Compare each view's closed windows, and write one row per view to `ops.reconciliation`. The task
fails when a difference has no known cause.

Every five minutes: a comparison costs as much as to compute gold, so it does not follow each of gold's cycles. After one that
took long, the next ones are skipped until three times as long has passed, so that rows stay fresh on a busy machine.
"""

from datetime import UTC, datetime

from airflow.sdk import CronTriggerTimetable, dag, task

from lockstep.airflow_task import give_way, reported, rest
from lockstep.lineage import assets, tables
from lockstep.orchestration import BACKGROUND_POOL, defaults


@dag(
    # Not when `marts` begins: the one that comes second would wait for the other.
    schedule=CronTriggerTimetable("2-59/5 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(BACKGROUND_POOL),
    tags=["live", "reconciliation"],
    description="Compare live with batch, window by window",
    doc_md=__doc__,
)
def reconcile():
    @task(
        task_id="reconcile",
        inlets=assets.of(tables.views("gold"), tables.views("live")),
        outlets=assets.of([tables.RECONCILIATION]),
    )
    def compare(run_id: str) -> dict[str, str]:
        from lockstep import tasks

        rest()
        give_way()
        with reported() as results:
            return tasks.reconcile(run_id, results)

    compare()


reconcile()
