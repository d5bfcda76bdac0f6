"""**Redo history safely.** Fill in the form: *plan → shadow → diff*, then somebody approves it (see *Required actions*), or the
rule does, then *promote*. Readers see all of it at once, or nothing; live queries keep running.

What to redo is given in one way: `from` and `to` (event time, UTC), `offsets` of one topic, or `versions` of one table.
[replay_undo](/dags/replay_undo) puts an interval back. `lockstep replay` has the same words.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowFailException

from lockstep.contracts import CONTRACTS
from lockstep.orchestration import BACKFILL_POOL, defaults
from lockstep.project import module_names

# The names of their modules: to import the views themselves would import Spark.
VIEWS = module_names("views")
LAYERS = ["bronze", "silver", "gold"]
PROMOTE, DISCARD = "Promote", "Discard"
NAME = "^[a-z][a-z0-9_.]*$"


def moment(which: str) -> Param:
    """A field for a time, which may stay empty."""
    zone = "Event time, in the zone that the page shows (bottom left; UTC unless you chose another)"
    return Param(None, type=["null", "string"], format="date-time", title=which, description=zone)


def several(names: list[str], title: str, description: str) -> Param:
    """A field for any number of names; the page sends null when all were taken out again."""
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "pattern": NAME},
        examples=names,
        title=title,
        description=description,
    )


FORM = {
    "reason": Param(type="string", minLength=3, maxLength=300, title="Reason", description="For the record"),
    "from": moment("From"),
    "to": moment("To (left out itself)"),
    "topics": several(list(CONTRACTS), "Topics", "None: those that the views read, or all"),
    "views": several(VIEWS, "Views", "None: all that read the topics"),
    "layers": Param(
        ["gold"],
        type="array",
        items={"type": "string", "enum": LAYERS},
        minItems=1,
        uniqueItems=True,
        examples=LAYERS,
        title="Layers",
        description="Gold alone, silver and gold, or all three",
    ),
    "late": Param(False, type="boolean", title="Late rows", description="Rows that came too late for a view count too"),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Stop after the diff, and keep nothing"),
    "approve": Param(
        "by_hand",
        type="string",
        enum=["by_hand", "by_rule"],
        values_display={"by_hand": "Somebody, by hand", "by_rule": "The rule below"},
        title="Approved by",
        description="Who decides after the diff",
    ),
    "max_changed_percent": Param(
        10,
        type="number",
        minimum=0,
        maximum=100,
        section="The rule",
        title="Changed windows, %",
        description="At most this share of the windows may change",
    ),
    "max_changed_windows": Param(
        None,
        type=["null", "integer"],
        minimum=0,
        section="The rule",
        title="Changed windows",
        description="And at most so many windows",
    ),
    "offsets": Param(
        None,
        type=["null", "object"],
        section="Instead of a time",
        title="Offsets",
        description='Of the one topic above: {"0": [start, end], …} by partition',
        additionalProperties={
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    "versions": Param(
        None,
        type=["null", "string"],
        pattern=r"^((bronze|silver|gold)\.[a-z][a-z0-9_]*@[0-9]+\.\.[0-9]+)?$",
        section="Instead of a time",
        title="Versions",
        description="What some versions of a table brought, such as bronze.<stream>@12..15",
    ),
}


def refusing(step: Callable[..., Any], *arguments: Any) -> Any:
    """Run a step; what is refused would be refused again, so it is not tried again."""
    from lockstep.replay.request import Refused

    try:
        return step(*arguments)
    except Refused as refusal:
        raise AirflowFailException(str(refusal)) from None


def person(dag_run: Any) -> str:
    """Who started the run, as far as Airflow knows."""
    return getattr(dag_run, "triggering_user_name", None) or "airflow"


@dag(
    schedule=None,
    is_paused_upon_creation=False,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=4,
    default_args=defaults(BACKFILL_POOL),
    params=FORM,
    tags=["replay"],
    description="Plan, shadow, diff, approve, promote",
    doc_md=__doc__,
)
def replay():
    @task
    def plan(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> str:
        from lockstep import tasks

        return refusing(tasks.replay_plan, dict(params), run_id, person(dag_run))

    @task
    def shadow(replay_id: str, run_id: str) -> dict[str, Any]:
        from lockstep import tasks

        return refusing(tasks.replay_shadow, replay_id, run_id)

    @task
    def diff(replay_id: str, run_id: str) -> str:
        from lockstep import tasks

        return refusing(tasks.replay_diff, replay_id, run_id)

    @task.branch
    def who_decides(params: Mapping[str, Any]) -> str | None:
        return None if params["dry_run"] else str(params["approve"])

    @task
    def by_rule(replay_id: str, run_id: str) -> None:
        from lockstep import tasks

        refusing(tasks.replay_approve, replay_id, run_id, "rule")

    @task.branch
    def answer(replay_id: str, answered: Mapping[str, Any], run_id: str) -> str:
        from lockstep import tasks

        if answered["chosen_options"] != [PROMOTE]:
            return "discard"
        by = (answered.get("responded_by_user") or {}).get("name") or "airflow"
        refusing(tasks.replay_approve, replay_id, run_id, by)
        return "promote"

    @task(trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
    def promote(replay_id: str, run_id: str) -> dict[str, int]:
        from lockstep import tasks

        return refusing(tasks.replay_promote, replay_id, run_id)

    @task
    def discard(replay_id: str, run_id: str) -> None:
        from lockstep import tasks

        refusing(tasks.replay_discard, replay_id, run_id)

    planned = plan()
    found = diff(planned)
    by_hand = HITLOperator(
        task_id="by_hand",
        subject="Promote this replay?",
        body=found,
        options=[PROMOTE, DISCARD],
    )
    decides, rule = who_decides(), by_rule(planned)
    answered = answer(planned, by_hand.output)
    shadow(planned) >> found >> decides >> [by_hand, rule]
    answered >> [promoted := promote(planned), discard(planned)]
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
            description="Its id: it stands over the diff, and lockstep replay show lists all",
        ),
    },
    tags=["replay"],
    description="Put the interval of a replay back",
    doc_md="**Undo a [replay](/dags/replay):** its interval, not its tables; what came to other intervals since stays.",
)
def replay_undo():
    @task
    def undo(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> dict[str, Any]:
        from lockstep import tasks

        return refusing(tasks.replay_undo, params["replay"], run_id, person(dag_run))

    undo()


replay()
replay_undo()
