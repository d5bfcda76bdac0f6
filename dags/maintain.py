"""**Housekeeping.** Every hour, archive the ledgers, compact the tables, and remove what nobody needs any more: old files, old
commits of the tables' logs, and old runs of Airflow. After a change of the dbt project, build its pages. Name the sources of dbt
that are stale.
"""

from datetime import UTC, datetime

from airflow.sdk import CronTriggerTimetable, dag, task

from lockstep.airflow_task import give_way, reported
from lockstep.orchestration import BACKFILL_POOL, defaults


@dag(
    schedule=CronTriggerTimetable("17 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(BACKFILL_POOL),
    tags=["maintenance"],
    description="Compact, vacuum and trim",
    doc_md=__doc__,
)
def maintain():
    @task(task_id="maintain")
    def compact_and_vacuum(run_id: str) -> list[str]:
        from lockstep import tasks

        give_way()
        with reported() as results:
            return tasks.maintain(run_id, results)

    @task(task_id="airflow_database")
    def clean_airflow() -> None:
        from lockstep import tasks

        give_way()
        tasks.clean_airflow()

    @task(task_id="dbt_docs")
    def document_marts() -> str:
        from lockstep import marts_tasks

        give_way()
        return marts_tasks.document_marts()

    @task(task_id="dbt_source_freshness")
    def look_for_stale_sources() -> list[str]:
        from lockstep import marts_tasks

        with reported() as results:
            return marts_tasks.look_for_stale_sources(results)

    compact_and_vacuum()
    clean_airflow()
    document_marts()
    look_for_stale_sources()


maintain()
