"""dbt's own pages: each model with its columns, tests and what follows from it, in one file that needs no server."""

from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import atomic_files
from lockstep.marts import artefacts
from lockstep.marts.dbt_project import MartsFailed, dbt_on, has_marts, invoke, project_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


# In the header of each of dbt's pages, which are one file: the data docs are beside it.
_LINK = (
    b'<a href="../data_docs/index.html" style="position: fixed; right: 16px; top: 24px; z-index: 9999; padding: 4px 12px; '
    b'border-radius: 4px; background: #fff; box-shadow: 0 1px 4px #0006">Data docs</a>'
)


def build(spark: "SparkSession", settings: "Settings") -> Path | None:
    """Build the pages if the project has changed since; where they are, beside the data docs. None: there are no marts.

    Raises:
        MartsFailed: dbt could not build them.
    """
    from dbt.cli.main import dbtRunner

    if not has_marts(settings):
        return None
    pages = settings.home / "dbt_docs" / "index.html"
    with dbt_on(spark, settings):
        marker = settings.home / "dbt" / f"{project_digest(settings)}.docs"
        if pages.exists() and marker.exists():
            return pages
        result = invoke(settings, dbtRunner(), "docs", "generate", "--static")
    written = artefacts.directory(settings) / artefacts.PAGES
    if not result.success or not written.exists():
        raise MartsFailed(f"dbt docs generate failed: {result.exception}")
    page, end, rest = written.read_bytes().rpartition(b"</body>")
    atomic_files.replace(pages, page + _LINK + end + rest, artefacts.MODE)
    atomic_files.replace(marker, b"", artefacts.MODE)
    return pages
