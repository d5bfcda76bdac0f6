"""The data docs and dbt's pages in Airflow: files that the gates and `maintain` write, for whoever has logged in.

A plugin's routes are not behind Airflow's login by themselves, and these pages have values of tables. So each route asks for it.
The addresses are those of the files below the home, so that the links between the pages hold for both.
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


@app.get("/data_docs/index.html")
def index() -> FileResponse:
    """The page with all tables."""
    return _page(_home() / "data_docs" / "index.html")


@app.get("/data_docs/tables/{name}.html")
def table(name: str) -> FileResponse:
    """The page of one table."""
    return _page(_home() / "data_docs" / "tables" / f"{name}.html")


@app.get("/dbt_docs/index.html")
def dbt_docs() -> FileResponse:
    """dbt's pages of the models, which are one file."""
    return _page(_home() / "dbt_docs" / "index.html")


def _home() -> Path:
    from lockstep import settings

    return settings.load().home


def _page(file: Path) -> FileResponse:
    """The file, if it is one of the pages: a name of a table has no slash, so it leads nowhere else."""
    if not file.is_file():
        raise HTTPException(
            404, "Not there yet: a gate writes the pages of the data docs, the DAG maintain those of dbt."
        )
    # It is written again by each gate.
    return FileResponse(file, media_type="text/html", headers={"Cache-Control": "no-store"})


class DataDocs(AirflowPlugin):
    """Airflow finds it by its base class."""

    name = "lockstep_data_docs"
    fastapi_apps = [{"app": app, "url_prefix": "/lockstep-docs", "name": "Lockstep data docs"}]
    external_views = [
        {"name": name, "href": f"/lockstep-docs/{folder}/index.html", "destination": "nav", "url_route": folder}
        for name, folder in (("Data docs", "data_docs"), ("dbt docs", "dbt_docs"))
    ]
