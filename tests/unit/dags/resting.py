"""Print how each task of the background pool ends soon after a slow run, as JSON.

test_airflow_task.py runs it in a process of its own.
"""

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import set_current_context

from lockstep.orchestration import BACKGROUND_POOL


@dataclass
class DagRun:
    """What a task sees of its run."""

    dag_id: str
    run_id: str = "scheduled__2026-11-26T05:00:00+00:00"
    run_type: str = "scheduled"


@dataclass
class Before:
    """The last run of the task: it took 100 s, and has ended now."""

    end_date: datetime
    start_date: datetime


class TaskInstance:
    """What a task sees of itself."""

    task_id, try_number, max_tries = "build", 1, 5

    def get_previous_ti(self, **_: Any) -> Before:
        """As Airflow's."""
        now = datetime.now(UTC)
        return Before(now, now - timedelta(seconds=100))


def ends(dag_id: str, task: Any) -> str:
    """How the task ends."""
    with set_current_context(cast(Any, {"dag_run": DagRun(dag_id), "ti": TaskInstance()})):
        try:
            task.python_callable("run-1")
        except AirflowSkipException as left_out:
            return str(left_out)
    return "done"


if __name__ == "__main__":
    dags = DagBag(sys.argv[1]).dags
    found = {dag.dag_id: ends(dag.dag_id, t) for dag in dags.values() for t in dag.tasks if t.pool == BACKGROUND_POOL}
    print("RESULT" + json.dumps(found))
