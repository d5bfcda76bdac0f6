"""What a run of the DAG was asked for, outside of Airflow until the run has ended."""

from pathlib import Path
from typing import Any

import pytest

from lockstep.erase import asked_in_airflow
from lockstep.erase.asked_in_airflow import HIDDEN, forget, take, taken
from lockstep.erase.request import ErasureRefused
from lockstep.settings import Settings

FORM: dict[str, Any] = {"subject": "ann", "ranges": None, "reason": "ticket 4711"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home, without Airflow's database."""
    monkeypatch.setattr(asked_in_airflow, "connection_to", lambda *_: None)
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    return Settings()


def files(settings: Settings) -> list[Path]:
    return [path for path in (settings.home / "erasures").rglob("*") if path.is_file()]


def test_it_is_known_until_the_run_has_ended_and_its_owner_alone_can_read_it(settings: Settings) -> None:
    form = take(settings, "run/1", FORM, "bob")
    assert (form.subject, form.ranges, form.reason, form.by) == ("ann", (), "ticket 4711", "bob")
    assert [path.stat().st_mode & 0o777 for path in files(settings)] == [0o600]
    assert "ann" not in repr(form)
    assert taken(settings, "run/1") == form
    forget(settings, "run/1", FORM)
    assert files(settings) == []
    with pytest.raises(ErasureRefused, match="trigger a new one"):
        taken(settings, "run/1")


def test_a_first_task_that_is_tried_again_finds_who_was_meant_though_airflow_has_it_no_more(settings: Settings) -> None:
    form = take(settings, "run", FORM, "bob")
    assert take(settings, "run", FORM | {"subject": HIDDEN}, "bob") == form


def test_a_run_whose_tasks_are_cleared_after_its_end_is_refused(settings: Settings) -> None:
    take(settings, "run", FORM, "bob")
    forget(settings, "run", FORM)
    with pytest.raises(ErasureRefused, match="trigger a new one"):
        take(settings, "run", FORM | {"subject": HIDDEN}, "bob")
    assert files(settings) == []


def test_what_a_run_was_asked_for_is_not_what_another_one_was(settings: Settings) -> None:
    take(settings, "run", FORM, "bob")
    other = take(settings, "run 2", FORM | {"subject": None, "ranges": ["page_views:0:1-2"]}, "eve")
    assert (other.subject, other.ranges) == ("", ("page_views:0:1-2",))
    forget(settings, "run", FORM)
    assert taken(settings, "run 2") == other
