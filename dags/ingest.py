"""**Bronze.** Every minute, take what the topics have beyond the ledger, in one commit per table.

`events` are the streams that producers write, `changes` those that Debezium captures. A stream that fails does not stop
the others. `landed` starts [refine](/dags/refine) when bronze has more than silver.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, CronTriggerTimetable, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowSkipException

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
    def take(kind: str, run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return tasks.ingest(kind, run_id)

    @task(outlets=[Asset(BRONZE)], trigger_rule=TriggerRule.ALL_DONE)
    def landed() -> list[str]:
        from lockstep import tasks

        # Not what the tasks before have taken: a task that died with its work done is run again, and takes nothing.
        if not (streams := tasks.unrefined()):
            raise AirflowSkipException("Silver has all that bronze has")
        return streams

    taken = [take.override(task_id=kind)(kind) for kind in ("events", "changes")]
    taken >> landed()
    taken >> EmptyOperator(task_id="complete")


ingest()
