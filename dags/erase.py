"""**Forget a person, or leaked records, in all layers.** Fill in the form: *plan* shows what would be erased, somebody approves
it (see *Required actions*), and *erase* does it and writes a receipt. It cannot be undone.

It waits until the live queries are stopped, with `lockstep down live`; afterwards, `lockstep up live`. The first task takes the
subject out of Airflow, which would keep it. `lockstep erase` does the same; `docs/operations/erasure.md` says what happens.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowFailException

from lockstep.airflow_task import refusable
from lockstep.erase.fields import LONGEST_TEXT, RANGE
from lockstep.orchestration import BACKFILL_POOL, defaults, responded_by, triggered_by
from lockstep.results import Results

ERASE, KEEP = "Erase", "Keep"

FORM = {
    "subject": Param(
        None,
        type=["null", "string"],
        maxLength=LONGEST_TEXT,
        title="Subject",
        description="Who: the value of the column that contracts name as subject. Airflow does not keep it",
    ),
    "ranges": Param(
        None,
        type=["null", "array"],
        items={"type": "string", "pattern": f"^{RANGE}$"},
        title="Ranges",
        description="Records instead, one range a line: TOPIC:PARTITION:FROM-TO, the last offset left out",
    ),
    "reason": Param(
        type="string",
        minLength=3,
        maxLength=LONGEST_TEXT,
        title="Reason",
        description="For the record, which is kept for ever: name nobody",
    ),
}


@contextmanager
def stage() -> Iterator[Results]:
    """Show the results of a stage on the page of its run. What is refused, or has left traces, is not tried again by itself."""
    from lockstep.erase_tasks import ErasureRefused, TracesLeft

    with refusable("this erasure", ErasureRefused) as results:
        try:
            yield results
        except TracesLeft as left:
            raise AirflowFailException(str(left)) from None


@dag(
    schedule=None,
    is_paused_upon_creation=False,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=4,
    default_args=defaults(BACKFILL_POOL),
    params=FORM,
    tags=["erasure"],
    description="Plan, approve, erase, prove it",
    doc_md=__doc__,
)
def erase():
    @task
    def plan(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> str:
        from lockstep import erase_tasks

        with stage() as results:
            return erase_tasks.plan(params, run_id, triggered_by(dag_run), results)

    @task.branch
    def answer(answered: Mapping[str, Any]) -> str | None:
        return "live_is_stopped" if answered["chosen_options"] == [ERASE] else None

    @task.sensor(mode="reschedule", poke_interval=30, timeout=timedelta(hours=6).total_seconds())
    def live_is_stopped(run_id: str) -> bool:
        from lockstep import erase_tasks

        with stage() as results:
            return erase_tasks.live_is_stopped(run_id, results)

    # One waits for the other: they hold the same tables.
    @task(task_id="erase", max_active_tis_per_dag=1)
    def carry_out(answered: Mapping[str, Any], run_id: str) -> str:
        from lockstep import erase_tasks

        with stage() as results:
            by = responded_by(answered)
            return erase_tasks.erase(run_id, by, results)

    @task
    def forget_form(run_id: str, params: Mapping[str, Any]) -> None:
        from lockstep import erase_tasks

        erase_tasks.forget(run_id, params)

    approve = HITLOperator(
        task_id="approve",
        subject="Erase this, for ever?",
        body=plan(),
        options=[ERASE, KEEP],
        # A person may need days.
        execution_timeout=None,
    )
    erased = carry_out(approve.output)
    answer(approve.output) >> live_is_stopped() >> erased
    # Whatever becomes of the others, also if somebody marks the run as failed.
    erased >> forget_form().as_teardown(on_failure_fail_dagrun=True)
    # The last task runs after a failure, too. This one keeps the run from ending well then, but for what was not approved.
    erased >> EmptyOperator(task_id="complete", trigger_rule=TriggerRule.NONE_FAILED)


erase()
