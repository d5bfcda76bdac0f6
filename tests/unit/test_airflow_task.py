"""What tasks of DAGs do around their work."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import TaskInstanceState
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import set_current_context
from tests.support.dag_scripts import told_by
from tests.support.paths import CHECKOUT

from lockstep.airflow_task import rest


@dataclass
class Task:
    """A task, of which a run took ``took`` and ended ``ago``, as Airflow tells it."""

    took: timedelta | None
    ago: timedelta
    try_number: int = 1

    def get_previous_ti(self, state: TaskInstanceState) -> Any:
        assert state is TaskInstanceState.SUCCESS, (
            "a run that was left out, or failed, says nothing of how long one takes"
        )
        end = datetime.now(UTC) - self.ago
        return self.took and SimpleNamespace(start_date=end - self.took, end_date=end)


def is_left_out(task: Task, run_type: str = "scheduled") -> bool:
    context = {"ti": task, "dag_run": SimpleNamespace(run_type=run_type)}
    with set_current_context(cast(Any, context)):
        try:
            rest()
        except AirflowSkipException:
            return True
    return False


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize(("ago", "left_out"), [(0, True), (295, True), (305, False)])
def test_a_task_in_the_background_works_a_quarter_of_the_time_at_most(ago: float, left_out: bool) -> None:
    assert is_left_out(Task(seconds(100), seconds(ago))) is left_out


def test_the_first_run_is_not_left_out() -> None:
    assert not is_left_out(Task(None, seconds(0)))


def test_what_a_person_starts_or_clears_is_not_left_out() -> None:
    assert not is_left_out(Task(seconds(100), seconds(0)), "manual")
    assert not is_left_out(Task(seconds(100), seconds(0), try_number=2))


def test_it_says_how_long_the_last_run_took_and_until_when_the_task_rests() -> None:
    context = {"ti": Task(seconds(100), seconds(0)), "dag_run": SimpleNamespace(run_type="scheduled")}
    with set_current_context(cast(Any, context)), pytest.raises(AirflowSkipException) as left_out:
        rest()
    until = datetime.now(UTC) + seconds(300)
    assert "took 100 s" in str(left_out.value)
    assert any(f"until {until - seconds(ago):%T} (UTC)" in str(left_out.value) for ago in range(3))


def test_the_marts_and_the_comparison_rest(tmp_path: Path) -> None:
    ends = told_by("resting", tmp_path, str(CHECKOUT / "dags"))
    assert ends.keys() == {"marts", "reconcile"}
    assert all(end.startswith("This run is left out.") for end in ends.values())


def test_silver_ingests_first_unless_a_person_has_paused_ingest(tmp_path: Path) -> None:
    assert told_by("ingesting", tmp_path, str(CHECKOUT / "dags")) == [True, False]
