"""The topics and the lake's tables as Airflow's assets, so that Airflow's asset graph is the lineage.

Airflow draws an edge for each inlet and each outlet that a task declares.
"""

from typing import Any

from airflow.sdk import Asset

from lockstep import settings as configuration


def of(*names: list[str]) -> list[Asset]:
    """The assets of tables and topics. They are sorted: in another order, they would be another version of the DAG."""
    found = sorted({name for several in names for name in several})
    return [Asset(name, uri=f"lockstep://{name.replace('.', '/', 1)}") for name in found]


def emit() -> None:
    """Emit an event for each outlet of the running task that its run has written, with what was written as its ``extra``.

    Airflow emits an event for every outlet of a task that succeeds. So those that the run has not written are taken off
    the task of this process.
    """
    from airflow.sdk import get_current_context

    from lockstep.lineage.written import since, written

    context: Any = get_current_context()
    task, run = context["task"], context["dag_run"]
    settings = configuration.load()
    emitted = []
    for asset in task.outlets:
        if facts := written(settings, asset.name, run.run_id, since(run.start_date)):
            context["outlet_events"][asset].extra = facts.as_extra()
            emitted.append(asset)
    task.outlets = emitted
