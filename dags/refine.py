"""**Silver and gold.** When bronze grew: parse, deduplicate and quarantine, hold silver against its suites, roll the
views up, and hold gold against its suites.

A gate that shuts fails its task, and the views over that stream wait; the others go on. `gate_gold` starts
[reconcile](/dags/reconcile).
"""

from datetime import UTC, datetime
from itertools import pairwise

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from lockstep.orchestration import BRONZE, GOLD, LIVE_POOL, defaults


@dag(
    schedule=[Asset(BRONZE)],
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(LIVE_POOL),
    tags=["live", "silver", "gold", "quality"],
    description="Bronze to silver to gold, with a gate after each",
    doc_md=__doc__,
)
def refine():
    @task
    def silver(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return tasks.refine(run_id)

    @task(trigger_rule=TriggerRule.ALL_DONE)
    def gate_silver(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return tasks.gate("silver", run_id)

    @task(trigger_rule=TriggerRule.ALL_DONE)
    def gold(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return tasks.roll_up(run_id)

    @task(trigger_rule=TriggerRule.ALL_DONE, outlets=[Asset(GOLD)])
    def gate_gold(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        checks = tasks.gate("gold", run_id)
        if not checks:
            raise AirflowSkipException("Nothing new in gold")
        return checks

    tasks = [silver(), gate_silver(), gold(), gate_gold()]
    for before, after in pairwise(tasks):
        before >> after
    # A view that waits must not turn the run green, so the run ends with a task that needs all of them.
    tasks >> EmptyOperator(task_id="complete", trigger_rule=TriggerRule.NONE_FAILED)


refine()
