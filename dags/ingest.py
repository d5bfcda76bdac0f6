"""**Bronze.** Every minute, write the new records of the topics to bronze, in one commit per table.

Producers write the streams of `events`, and Debezium captures those of `changes`. A stream that fails does not stop the
others. `landed` starts [refine](/dags/refine) when silver is behind bronze. The tab *Tables* of a run has a line for each stream.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, CronTriggerTimetable, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from lockstep.airflow_task import reported
from lockstep.lineage import assets, tables
from lockstep.orchestration import BRONZE, LIVE_POOL, defaults


@dag(
    schedule=CronTriggerTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(LIVE_POOL),
    tags=["live", "bronze"],
    description="Topics to bronze, every minute",
    doc_md=__doc__,
)
def ingest():
    @task
    def write_bronze(kind: str, run_id: str) -> dict[str, int]:
        from lockstep import tasks

        with reported() as results:
            return tasks.ingest(kind, run_id, results)

    @task(outlets=[Asset(BRONZE)], trigger_rule=TriggerRule.ALL_DONE)
    def landed() -> list[str]:
        from lockstep import tasks

        # The results of the tasks before do not tell: a task that died after its commit runs again, and then ingests nothing.
        if not (streams := tasks.unrefined()):
            raise AirflowSkipException("Silver is not behind bronze")
        return streams

    kinds = [
        write_bronze.override(
            task_id=kind, inlets=assets.of(tables.topics(kind)), outlets=assets.of(tables.bronze(kind))
        )(kind)
        for kind in ("events", "changes")
    ]
    kinds >> landed()
    kinds >> EmptyOperator(task_id="complete")


ingest()
