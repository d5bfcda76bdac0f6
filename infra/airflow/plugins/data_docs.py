"""The data docs in Airflow: the files that the gates write, for whoever has logged in.

A plugin's routes are not behind Airflow's login by themselves, and these pages have values of tables. So each route asks for it.
"""

from pathlib import Path

from airflow.api_fastapi.core_api.security import requires_authenticated
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse

app = FastAPI(
    title="Lockstep data docs",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(requires_authenticated())],
)


@app.get("/index.html")
def index() -> FileResponse:
    """The page with all tables."""
    return _page(_root() / "index.html")


@app.get("/tables/{name}.html")
def table(name: str) -> FileResponse:
    """The page of one table."""
    return _page(_root() / "tables" / f"{name}.html")


def _root() -> Path:
    from lockstep import settings

    return settings.load().home / "data_docs"


def _page(file: Path) -> FileResponse:
    """The file, if it is one of the pages: a name of a table has no slash, so it leads nowhere else."""
    if not file.is_file():
        raise HTTPException(404, "No gate has written this page yet.")
    # It is written again by each gate.
    return FileResponse(file, media_type="text/html", headers={"Cache-Control": "no-store"})


class DataDocs(AirflowPlugin):
    """Airflow finds it by its base class."""

    name = "lockstep_data_docs"
    fastapi_apps = [{"app": app, "url_prefix": "/lockstep-docs", "name": "Lockstep data docs"}]
    external_views = [
        {"name": "Data docs", "href": "/lockstep-docs/index.html", "destination": "nav", "url_route": "data_docs"}
    ]
