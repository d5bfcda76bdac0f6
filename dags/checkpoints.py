"""**The checkpoints of the live queries.** Fill in the form: *list*, *verify*, *inspect* and *compatible* only look. *savepoint*
copies. *restore*, *reset* and *fork* start a new generation of a query, and the live service switches the query to it. *share*
does so for all keyed views, in one job.

`lockstep checkpoints` has the same actions. `docs/operations/checkpoints.md` says what each does, and what to do with a broken
checkpoint.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from lockstep.airflow_task import reported
from lockstep.checkpoints.fields import DESCRIPTIONS, LONGEST_TEXT, RESET_TO, SAVEPOINT_NAME, Action
from lockstep.orchestration import LIVE_POOL, defaults, triggered_by
from lockstep.project import module_names
from lockstep.results import Outcome, TableResult

# The names of their modules: to import the views themselves would import Spark.
VIEWS = module_names("views")

FORM = {
    "action": Param(
        Action.LIST.value,
        type="string",
        enum=[action.value for action in Action],
        values_display={action.value: f"{action}: {description}" for action, description in DESCRIPTIONS.items()},
        title="Action",
    ),
    "query": Param(
        None,
        type=["null", "string"],
        enum=[None, *VIEWS],
        values_display={"null": "all (list, verify, compatible and share only)"},
        title="Query",
    ),
    "name": Param(
        None,
        type=["null", "string"],
        pattern=f"^({SAVEPOINT_NAME})?$",
        title="Name",
        description="Of the savepoint to take or restore; for fork, the changed view",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        pattern=f"^({RESET_TO})?$",
        title="To",
        description="For reset: earliest, gold, a time such as 2026-11-20T10:00:00Z, or offsets such as 0=120,1=88,2=93",
    ),
    "reason": Param(
        None,
        type=["null", "string"],
        maxLength=LONGEST_TEXT,
        title="Reason",
        description="For the record, any text; needed for restore, reset, fork and share",
    ),
}
log = logging.getLogger(__name__)


@dag(
    schedule=None,
    is_paused_upon_creation=False,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args=defaults(LIVE_POOL),
    params=FORM,
    tags=["live", "checkpoints"],
    description="List, verify, save, restore, reset and fork the live queries",
    doc_md=__doc__,
)
def checkpoints():
    @task
    def carry_out(run_id: str, params: Mapping[str, Any], dag_run: Any = None) -> list[str]:
        from lockstep.checkpoints import actions, form
        from lockstep.errors import LockstepError
        from lockstep.settings import load

        query = params["query"] or "all queries"
        with reported() as results:
            try:
                outcomes = actions.carry_out(load(), form.request({**params, "by": triggered_by(dag_run)}), run_id)
            except LockstepError as refusal:
                results.add(TableResult(query, Outcome.REFUSED, detail=str(refusal)))
                # The same request would be refused again, so the task is not retried.
                raise AirflowFailException(str(refusal)) from None
            texts = [str(outcome) for outcome in outcomes]
            for line in "\n".join(texts).splitlines():
                log.info("%s", line)
            broken = any(actions.keeps_query_from_starting(outcome) for outcome in outcomes)
            results.add(TableResult(query, Outcome.FAILED if broken else Outcome.DONE, detail="\n".join(texts)))
            if broken:
                raise AirflowFailException("\n".join(texts))
            return texts

    carry_out()


checkpoints()
