"""Print whether the task `silver` ingests first, where the DAG `ingest` is paused and where it is not, as JSON.

test_airflow_task.py runs it in a process of its own.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any, cast

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.execution_time.context import set_current_context

from lockstep import airflow_task, tasks
from lockstep.lineage import assets


def ingests_first(silver: Any, is_paused: bool) -> bool:
    """What the task asks of the step, where the DAG is paused or not."""
    asked: list[bool] = []
    tasks.refine = lambda *_, ingest_first: asked.append(ingest_first)  # type: ignore[assignment]
    dags = {"ingest": SimpleNamespace(is_paused=is_paused)}
    with set_current_context(cast(Any, {"ti": SimpleNamespace(get_dag=dags.__getitem__)})):
        silver.python_callable("run-1")
    return asked[0]


if __name__ == "__main__":
    # Airflow is told nothing.
    airflow_task._publish = lambda _: None
    assets.emit = lambda: None
    task = DagBag(sys.argv[1]).dags["refine"].get_task("silver")
    print("RESULT" + json.dumps([ingests_first(task, is_paused) for is_paused in (False, True)]))
