"""**Bronze.** Every minute, take what the topics have beyond the ledger, in one commit per table.

`events` are the streams that producers write, `changes` those that Debezium captures. A stream that fails does not stop
the others. `landed` starts [refine](/dags/refine) when anything arrived.
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
        from lockstep import steps

        return steps.ingest(kind, run_id)

    @task(outlets=[Asset(BRONZE)], trigger_rule=TriggerRule.ALL_DONE)
    def landed(events: dict[str, int] | None, changes: dict[str, int] | None) -> dict[str, int]:
        # None: the task failed, but some of its streams may have landed all the same.
        if events == changes == {}:
            raise AirflowSkipException("Nothing new in any topic")
        return (events or {}) | (changes or {})

    events, changes = take.override(task_id="events")("events"), take.override(task_id="changes")("changes")
    landed(events, changes)
    [events, changes] >> EmptyOperator(task_id="complete")


ingest()
