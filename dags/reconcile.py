"""**Live against batch.** When gold grew, and every other minute (a window may close in the live layer last): compare each view's
closed windows, and keep a row for each in `ops.reconciliation`. The task fails when a difference has no known cause.

Beside it, `gate_gold` holds what [rollup_daily](/dags/rollup_daily) rebuilt against its suites.
"""

from datetime import UTC, datetime

from airflow.sdk import Asset, AssetOrTimeSchedule, CronTriggerTimetable, dag, task

from lockstep.orchestration import GOLD, LIVE_POOL, defaults


@dag(
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("*/2 * * * *", timezone="UTC"), assets=[Asset(GOLD)]),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(LIVE_POOL),
    tags=["live", "reconciliation"],
    description="Compare live with batch, window by window",
    doc_md=__doc__,
)
def reconcile():
    @task
    def gate_gold(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return tasks.gate("gold", run_id)

    @task(task_id="reconcile")
    def compare(run_id: str) -> dict[str, str]:
        from lockstep import tasks

        return tasks.reconcile(run_id)

    gate_gold()
    compare()


reconcile()
