"""**Past days.** Rebuild the views and the marts of one whole day (UTC). You may run it again at any time.

The data interval is the day, so *Trigger → Backfill* rebuilds any range of days, also those before the start date. Give it
two active runs at most: its pool has two slots, which leaves room for live work.
"""

from datetime import UTC, datetime

from airflow.sdk import CronDataIntervalTimetable, dag, task

from lockstep.orchestration import BACKFILL_POOL, defaults


@dag(
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=2,
    default_args=defaults(BACKFILL_POOL),
    tags=["batch", "gold", "marts"],
    description="Rebuild the views and marts of a day",
    doc_md=__doc__,
)
def rollup_daily():
    @task
    def rebuild_day(run_id: str, data_interval_start: datetime, data_interval_end: datetime) -> list[str]:
        from lockstep import tasks

        return tasks.rebuild_day(data_interval_start, data_interval_end, run_id)

    rebuild_day()


rollup_daily()
