"""**Redo history safely.** Fill in the form: *plan → shadow → diff*, then somebody approves it (see *Required actions*), or the
rule does, then *promote*. Readers see all of it at once, or nothing. Live queries keep running.

What to redo is given in one way: `from` and `to` (event time, UTC), `offsets` of one topic, or `versions` of one table.
[replay_undo](/dags/replay_undo) puts an interval back. `lockstep replay` has the same fields.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, TriggerRule, dag, task

from lockstep.airflow_task import refusable
from lockstep.contracts import CONTRACTS
from lockstep.lineage import assets, tables
from lockstep.orchestration import BACKFILL_POOL, defaults, responded_by, triggered_by
from lockstep.project import module_names
from lockstep.replay import form
from lockstep.replay.request import ReplayRefused
from lockstep.results import Results

PROMOTE, DISCARD = "Promote", "Discard"
# The names of the views' modules: to import the views themselves would import Spark.
CHOICES = {"topics": list(CONTRACTS), "views": module_names("views")}
TABLES = assets.of(tables.replayed())


def stage() -> AbstractContextManager[Results]:
    """Show the results of a stage on the page of its run. A stage that is refused is not tried again."""
    return refusable("this replay", ReplayRefused)


@dag(
    schedule=None,
    is_paused_upon_creation=False,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=4,
    default_args=defaults(BACKFILL_POOL),
    params={name: Param(**arguments) for name, arguments in form.fields(CHOICES).items()},
    tags=["replay"],
    description="Plan, shadow, diff, approve, promote",
    doc_md=__doc__,
)
def replay():
    @task
    def plan(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> str:
        from lockstep import replay_tasks

        with stage() as results:
            return replay_tasks.plan(dict(params), run_id, triggered_by(dag_run), results)

    @task
    def shadow(replay_id: str, run_id: str) -> dict[str, Any]:
        from lockstep import replay_tasks

        with stage() as results:
            return replay_tasks.shadow(replay_id, run_id, results)

    @task
    def diff(replay_id: str, run_id: str) -> str:
        from lockstep import replay_tasks

        with stage() as results:
            return replay_tasks.diff(replay_id, run_id, results)

    @task.branch
    def who_decides(params: Mapping[str, Any]) -> str | None:
        return None if params["dry_run"] else str(params["approve"])

    @task
    def by_rule(replay_id: str, run_id: str) -> None:
        from lockstep import replay_tasks

        with stage():
            replay_tasks.approve_by_rule(replay_id, run_id)

    @task.branch
    def answer(replay_id: str, answered: Mapping[str, Any], run_id: str) -> str:
        from lockstep import replay_tasks

        if answered["chosen_options"] != [PROMOTE]:
            return "discard"
        by = responded_by(answered)
        with stage():
            replay_tasks.approve(replay_id, run_id, by)
        return "promote"

    @task(trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, outlets=TABLES)
    def promote(run_id: str, ti: Any = None) -> dict[str, int]:
        from lockstep import replay_tasks

        # Not an argument: that would make `plan` one of the tasks before, and its success enough to run after a dry run.
        with stage() as results:
            return replay_tasks.promote(ti.xcom_pull(task_ids="plan"), run_id, results)

    @task
    def discard(replay_id: str, run_id: str) -> None:
        from lockstep import replay_tasks

        with stage():
            replay_tasks.discard(replay_id, run_id)

    planned = plan()
    compared = diff(planned)
    by_hand = HITLOperator(
        task_id="by_hand",
        subject="Promote this replay?",
        body=compared,
        options=[PROMOTE, DISCARD],
        # A person may need days.
        execution_timeout=None,
    )
    decides, rule = who_decides(), by_rule(planned)
    answered = answer(planned, by_hand.output)
    shadow(planned) >> compared >> decides >> [by_hand, rule]
    answered >> [promoted := promote(), discard(planned)]
    rule >> promoted


@dag(
    schedule=None,
    is_paused_upon_creation=False,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args=defaults(BACKFILL_POOL),
    params={
        "replay": Param(
            type="string",
            pattern="^[a-z0-9][a-z0-9-]{3,39}$",
            title="Replay",
            description="Its id, as it is shown above the diff; lockstep replay show lists all",
        ),
    },
    tags=["replay"],
    description="Put the interval of a replay back",
    doc_md="**Undo a [replay](/dags/replay):** its interval, not its tables. What was written to other intervals since stays.",
)
def replay_undo():
    @task(outlets=TABLES)
    def undo(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> dict[str, Any]:
        from lockstep import replay_tasks

        with stage() as results:
            return replay_tasks.undo(params["replay"], run_id, triggered_by(dag_run), results)

    undo()


replay()
replay_undo()
