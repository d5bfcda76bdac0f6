"""What a run of the DAG ``erase`` was asked for, kept outside of Airflow until the run has ended.

Airflow keeps the form of a run for as long as the run, and in its audit log. So the first task takes the subject out of both,
into a file that its owner alone can read, and the last one removes the file: a person may take days to approve in between.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from psycopg2.extras import Json

from lockstep import atomic_files
from lockstep.control.written_anew import write_anew
from lockstep.erase import receipt
from lockstep.erase.database import connection_to
from lockstep.erase.fields import DAG
from lockstep.erase.needles import in_text
from lockstep.erase.request import ErasureRefused

if TYPE_CHECKING:
    from pathlib import Path

    from lockstep.settings import Settings

# What Airflow has in the place of the subject.
HIDDEN = "***"
_OVER = "This run does not know any more who was to be forgotten, or what was to be erased: trigger a new one."


@dataclass(frozen=True)
class Form:
    """The fields of the form, and who has sent it."""

    subject: str = field(repr=False)
    ranges: tuple[str, ...]
    reason: str
    by: str


def take(settings: "Settings", run_id: str, params: Mapping[str, Any], by: str) -> Form:
    """Take what the form says out of Airflow. If that was done before, what was taken then.

    Raises:
        ErasureRefused: the run had ended, and somebody has cleared its tasks.
    """
    file = _file(settings, run_id)
    if not file.exists():
        form = Form(params["subject"] or "", tuple(params["ranges"] or ()), params["reason"], by)
        if form.subject == HIDDEN:
            raise ErasureRefused(_OVER)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_files.replace(file, json.dumps(asdict(form)).encode(), 0o600)
    form = taken(settings, run_id)
    _hide(settings, run_id, form.subject)
    return form


def taken(settings: "Settings", run_id: str) -> Form:
    """What the run was asked for.

    Raises:
        ErasureRefused: it has ended, and knows it no more.
    """
    file = _file(settings, run_id)
    if not file.exists():
        raise ErasureRefused(_OVER)
    found = json.loads(file.read_text())
    return Form(**found | {"ranges": tuple(found["ranges"])})


def forget(settings: "Settings", run_id: str, params: Mapping[str, Any]) -> None:
    """Remove what the run was asked for, also if the run has failed before it was taken out of Airflow."""
    if (subject := params["subject"] or "") != HIDDEN:
        _hide(settings, run_id, subject)
    atomic_files.remove(_file(settings, run_id))


def _file(settings: "Settings", run_id: str) -> "Path":
    name = hashlib.sha256(run_id.encode()).hexdigest()[:32]
    return receipt.directory(settings) / "asked" / f"{name}.json"


def _hide(settings: "Settings", run_id: str, subject: str) -> None:
    """Blank the subject in the run's form, and in the audit log of the DAG, and write these tables anew."""
    connection = connection_to(settings, "airflow") if subject else None
    if connection is None:
        return
    with closing(connection), connection.cursor() as cursor:
        connection.autocommit = True
        # As the text is, and as JSON has it.
        words = in_text(subject)
        cursor.execute("SELECT conf FROM dag_run WHERE dag_id = %s AND run_id = %s", (DAG, run_id))
        for (conf,) in cursor.fetchall():
            hidden = {name: _without(words, value) for name, value in conf.items()}
            if hidden != conf:
                cursor.execute(
                    "UPDATE dag_run SET conf = %s WHERE dag_id = %s AND run_id = %s", (Json(hidden), DAG, run_id)
                )
        cursor.execute("SELECT id, extra FROM log WHERE dag_id = %s AND extra ~ %s", (DAG, words))
        for number, extra in cursor.fetchall():
            cursor.execute("UPDATE log SET extra = %s WHERE id = %s", (_without(words, extra), number))
        # Also if nothing was to be blanked: whoever did it may have died before this.
        write_anew(cursor, [("public", "dag_run"), ("public", "log")])


def _without(words: str, value: Any) -> Any:
    return re.sub(words, HIDDEN, value) if isinstance(value, str) else value
