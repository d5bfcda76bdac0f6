"""Files that need no ``apply``, because what runs reads them by itself: suites and DAGs that were changed since."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import suite_files
from lockstep.airflow_api import AirflowRefused, Dag, connected
from lockstep.quality import outcomes

if TYPE_CHECKING:
    from lockstep.settings import Settings

_NEXT_GATE = "the next gate of the table checks by it"
_NEXT_READ = "Airflow reads it by itself, within a minute; `lockstep status` names it if it cannot"


def look(settings: "Settings") -> dict[str, str]:
    """By file, what happens. Where Airflow does not answer, `lockstep status` says so, and its DAGs are left out."""
    found = dict.fromkeys(changed_suites(settings), _NEXT_GATE)
    try:
        with connected(settings) as airflow:
            dags = airflow.dags().values()
    except AirflowRefused:
        return found
    return found | dict.fromkeys(
        (f"DAG file {file.name}" for file in unread(settings.project / "dags", dags)), _NEXT_READ
    )


def changed_suites(settings: "Settings") -> Iterator[str]:
    """The suites that are not those by which their tables were checked last."""
    for table, known in outcomes.latest(settings).suites.items():
        if known and suite_files.digest(settings, table) not in (known, None):
            yield f"suite {table}"


def unread(folder: Path, dags: Iterable[Dag]) -> list[Path]:
    """The files of the folder that were written after Airflow had read them.

    It knows no time for a file without DAGs: that of the file that it read last counts.
    """
    read: dict[str, datetime] = {}
    for dag in dags:
        if dag.read_at:
            read[dag.file] = max(dag.read_at, read.get(dag.file, dag.read_at))
    newest = max(read.values(), default=None)
    return [
        file
        for file in sorted(folder.glob("*.py"))
        if newest and datetime.fromtimestamp(file.stat().st_mtime, UTC) > read.get(str(file), newest)
    ]
