"""The tab *Tables* on the page of a run and of a task: what became of each stream, view and model.

The page has no data of its own. It reads what the tasks have left (``lockstep.results``) from Airflow's public API, as whoever
has logged in, so it needs no login of its own.
"""

from pathlib import Path

from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI
from fastapi.responses import FileResponse

PAGE = Path(__file__).with_name("run_tables.html")
app = FastAPI(title="Lockstep", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/tables")
def tables() -> FileResponse:
    """The page. Its address says of which DAG, run and task."""
    return FileResponse(PAGE, media_type="text/html")


class RunTables(AirflowPlugin):
    """Airflow finds it by its base class."""

    name = "lockstep"
    fastapi_apps = [{"app": app, "url_prefix": "/lockstep", "name": "Lockstep"}]
    external_views = [
        {
            "name": "Tables",
            "href": "/lockstep/tables?dag={DAG_ID}&run={RUN_ID}",
            "destination": "dag_run",
            "url_route": "tables",
        },
        {
            "name": "Tables",
            "href": "/lockstep/tables?dag={DAG_ID}&run={RUN_ID}&task={TASK_ID}",
            "destination": "task_instance",
            "url_route": "task_tables",
        },
    ]
