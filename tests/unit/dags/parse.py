"""Print the DAGs of a folder as Airflow parses them, as JSON. test_dags.py runs it in a process of its own."""

import json
import sys
from datetime import UTC, datetime
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

HEAVY = ("pyspark", "dbt", "great_expectations", "pandas", "kafka")


def interval(timetable: Any) -> list[str] | None:
    """The data interval of a run that is started in the morning of 20 November."""
    span = timetable.infer_manual_data_interval(run_after=datetime(2026, 11, 20, 7, tzinfo=UTC))
    return [span.start.isoformat(), span.end.isoformat()] if span else None


def _limit(task: Any) -> Any:
    """How long a task may take. Of one that asks somebody, Airflow makes the limit of a task that of the answer."""
    return task.execution_timeout or getattr(task, "response_timeout", None)


def described(dag: Any) -> dict[str, Any]:
    """The properties of a DAG that the tests read."""
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    return {
        "doc": dag.doc_md,
        "description": dag.description,
        "tags": sorted(dag.tags),
        "catchup": dag.catchup,
        "schedule": timetable.summary,
        "interval": interval(timetable),
        "params": {name: dag.params.get_param(name).schema for name in dag.params},
        "tasks": {
            task.task_id: {
                "owner": task.owner,
                "retries": task.retries,
                "delay": task.retry_delay.total_seconds(),
                "backoff": task.retry_exponential_backoff,
                "timeout": (limit := _limit(task)) and limit.total_seconds(),
                "pool": task.pool,
                "at_once": task.max_active_tis_per_dag,
                "rule": str(task.trigger_rule),
                "teardown": task.is_teardown,
                "upstream": sorted(task.upstream_task_ids),
                "inlets": [inlet.name for inlet in task.inlets],
                "outlets": [outlet.name for outlet in task.outlets],
                "templated": repr([getattr(task, field, None) for field in task.template_fields]),
            }
            for task in dag.tasks
        },
    }


if __name__ == "__main__":
    bag = DagBag(sys.argv[1])
    heavy = [module for module in HEAVY if module in sys.modules]
    dags = {name: described(dag) for name, dag in bag.dags.items()}
    print("RESULT" + json.dumps({"errors": bag.import_errors, "dags": dags, "heavy": heavy}))
