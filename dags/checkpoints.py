"""**The checkpoints of the live queries.** Fill in the form: *list*, *verify*, *inspect* and *compatible* only look; *savepoint*,
*restore*, *reset* and *fork* change where a query goes on. The live service takes a new generation up by itself.

`lockstep checkpoints` has the same words. What each does, and what to do when one is broken: `docs/operations/checkpoints.md`.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from lockstep.orchestration import LIVE_POOL, defaults
from lockstep.project import module_names

# The names of their modules: to import the views themselves would import Spark.
VIEWS = module_names("views")
ACTIONS = {
    "list": "where each query is",
    "verify": "is every file whole?",
    "inspect": "the state of one query",
    "compatible": "can the queries of this code resume?",
    "savepoint": "copy where one query is",
    "restore": "go on from a savepoint",
    "reset": "compute one query again",
    "fork": "a changed view goes on from here",
}
PLAIN = r"^[A-Za-z0-9_ .,:'()+#@/-]{0,200}$"

FORM = {
    "action": Param(
        "list",
        type="string",
        enum=list(ACTIONS),
        values_display={action: f"{action}: {what}" for action, what in ACTIONS.items()},
        title="Action",
    ),
    "query": Param(
        None,
        type=["null", "string"],
        enum=[None, *VIEWS],
        values_display={"null": "all (list, verify and compatible only)"},
        title="Query",
    ),
    "name": Param(
        None,
        type=["null", "string"],
        pattern="^([a-z0-9][a-z0-9_-]{0,62})?$",
        title="Name",
        description="Of the savepoint to take or restore; for fork, the changed view",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        pattern=r"^[A-Za-z0-9_.:,=+-]{0,2000}$",
        title="To",
        description="For reset: earliest, a time such as 2026-11-20T10:00:00Z, or offsets such as 0=120,1=88,2=93",
    ),
    "why": Param(
        None,
        type=["null", "string"],
        pattern=PLAIN,
        title="Why",
        description="For the record; needed for savepoint, restore, reset and fork",
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
        from lockstep.checkpoints import form
        from lockstep.errors import LockstepError
        from lockstep.settings import load

        by = getattr(dag_run, "triggering_user_name", None) or "airflow"
        try:
            lines = form.carry_out(load(), form.request({**params, "by": by}), run_id)
        except LockstepError as refusal:
            # What is refused would be refused again, so it is not tried again.
            raise AirflowFailException(str(refusal)) from None
        for line in "\n".join(lines).splitlines():
            log.info("%s", line)
        if any(line.startswith(("BROKEN", "INCOMPATIBLE")) for line in lines):
            raise AirflowFailException("\n".join(lines))
        return lines

    carry_out()


checkpoints()
