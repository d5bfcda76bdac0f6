"""Changed files that are read by themselves are named until they were read."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lockstep.airflow_api import Dag
from lockstep.deploy.followed import unread

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def written(folder: Path, name: str, at: datetime) -> Path:
    file = folder / name
    file.write_text("")
    os.utime(file, (at.timestamp(), at.timestamp()))
    return file


def test_a_dag_file_is_named_until_airflow_has_read_what_was_written(tmp_path: Path) -> None:
    minute = timedelta(minutes=1)
    changed, same, new = (
        written(tmp_path, "changed.py", NOON + minute),
        written(tmp_path, "same.py", NOON - minute),
        written(tmp_path, "new.py", NOON + 2 * minute),
    )
    written(tmp_path, "helper.py", NOON - minute)
    dags = [Dag(file.stem, paused=False, file=str(file), read_at=NOON) for file in (changed, same)]
    assert unread(tmp_path, dags) == [changed, new]
    assert unread(tmp_path, []) == [], "before Airflow has read anything, nobody knows"
    later = [Dag(dag.name, paused=False, file=dag.file, read_at=NOON + 3 * minute) for dag in dags]
    assert unread(tmp_path, later) == []
