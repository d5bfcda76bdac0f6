"""The tasks of the marts: what they take from the run of dbt, and when they build their mart themselves."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import set_current_context
from airflow.triggers.base import TaskFailedEvent, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from lockstep import airflow_marts, airflow_task, tasks
from lockstep.airflow_marts import MartTask, MartTrigger, told
from lockstep.lineage import tables
from lockstep.marts.dbt_project import MartsFailed
from lockstep.marts.progress import Progress, Reader, State, file_of
from lockstep.settings import Settings

RUN = "manual__2026-11-26T05:00:00+00:00"


@dataclass
class Try:
    """A try of a mart's task, as the triggerer sees it. Airflow's ids begin with the milliseconds of their creation."""

    try_number: int = 1
    created: float = field(default_factory=time.time)
    dag_id: str = "marts"
    run_id: str = RUN

    @property
    def id(self) -> str:
        return f"{int(self.created * 1000):012x}".ljust(32, "7")


def event_of(attempt: Try, states: Mapping[str, str | None], monkeypatch: pytest.MonkeyPatch) -> TriggerEvent:
    """The event with which the trigger of ``daily_orders`` ends, where Airflow's tasks have these states."""
    monkeypatch.setattr(airflow_marts, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(Try, "get_task_states", staticmethod(lambda **_: {RUN: states}), raising=False)
    trigger = MartTrigger("daily_orders", "build", ["marts.other"])
    trigger._task_instance = cast(Any, attempt)

    async def first() -> TriggerEvent:
        async for event in trigger.run():
            return event
        raise AssertionError("it ended without an event")

    return asyncio.run(asyncio.wait_for(first(), 20))


@pytest.fixture(autouse=True)
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LOCKSTEP_HOME", str(settings.home))
    return settings


@pytest.fixture
def progress(settings: Settings) -> Progress:
    return Progress(file_of(settings, "marts", RUN))


@pytest.mark.parametrize(
    ("state", "event"),
    [(State.SUCCESS, TaskSuccessEvent), (State.FAILED, TaskFailedEvent), (State.SKIPPED, TaskSkippedEvent)],
)
def test_a_mart_ends_as_the_run_of_dbt_says_and_its_log_has_what_was_said_of_it(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: State, event: type
) -> None:
    attempt = Try()
    progress.say("of all")
    progress.say("of this one", "daily_orders")
    progress.end("daily_funnel", State.FAILED, "of another one")
    progress.end("daily_orders", state, "the end")
    capsys.readouterr()
    assert isinstance(event_of(attempt, {"build": "running"}, monkeypatch), event)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("]")[2].partition("[")[0].strip() for line in lines] == ["of all", "of this one", "the end"]


def test_a_mart_that_was_cleared_after_the_run_is_built_by_its_own_task(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.end("daily_orders", State.FAILED, "of the try before")
    cleared = Try(2, created=time.time() + 1)
    event = event_of(cleared, {"build": "success", "marts.other": "success"}, monkeypatch)
    assert event.payload == "cleared"


@pytest.mark.parametrize("builder", ["build", "marts.other"])
def test_a_mart_that_was_cleared_waits_for_another_task_that_builds_it(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    states: dict[str, str | None] = {"build": "success", "marts.other": "success", builder: None}

    class Said(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            progress.end("daily_orders", State.SUCCESS, "built by the other")
            return states.get(key, default)

    cleared = Try(2)
    assert isinstance(event_of(cleared, Said(), monkeypatch), TaskSuccessEvent)


def test_a_mart_of_which_a_run_that_was_killed_has_said_nothing_is_skipped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(event_of(Try(), {"build": "failed", "marts.other": "success"}, monkeypatch), TaskSkippedEvent)


def test_a_mart_that_builds_itself_says_how_those_end_that_are_made_from_it(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(mart: str, run_id: str, results: object, progress: Progress) -> list[str]:
        progress.found(mart, State.FAILED)
        raise MartsFailed(f"{mart} of {run_id} failed")

    monkeypatch.setattr(tasks, "build_mart", fails)
    monkeypatch.setattr(airflow_task, "_publish", lambda _: None)
    progress.built(("2026-11-25T00:00:00+00:00", "2026-11-26T00:00:00+00:00"))
    cleared = MartTask(task_id="marts.daily_customers", mart="daily_customers", builder="build", made_from=[])
    with pytest.raises(MartsFailed, match="daily_customers of manual__"):
        cleared.execute({"dag_run": SimpleNamespace(dag_id="marts", run_id=RUN), "run_id": RUN})
    assert progress.file
    ended = {line.mart: line.state for line in Reader(progress.file).new() if line.state}
    assert ended == {"customer_lifetime_value": State.SKIPPED, "customer_cohorts": State.SKIPPED}


def test_a_mart_of_a_run_that_has_built_nothing_is_skipped(progress: Progress) -> None:
    cleared = MartTask(task_id="marts.daily_customers", mart="daily_customers", builder="build", made_from=[])
    with pytest.raises(AirflowSkipException, match="Clear the task that runs dbt"):
        cleared.execute({"dag_run": SimpleNamespace(dag_id="marts", run_id=RUN), "run_id": RUN})


def run_of_dbt(error: Exception | None, try_number: int, failed: Mapping[str, list[str]] | None = None) -> None:
    """A task of two attempts, in which dbt has built one mart and then failed."""
    context = {
        "dag_run": SimpleNamespace(dag_id="marts", run_id=RUN),
        "ti": SimpleNamespace(task_id="build", try_number=try_number, max_tries=1),
    }
    with set_current_context(cast(Any, context)), told() as progress:
        progress.found("daily_orders", State.SUCCESS)
        progress.failed |= failed or {}
        for mart in (failed or {}).values():
            progress.found(mart[0], State.FAILED)
        if error:
            raise error


def ends(settings: Settings) -> dict[str, State]:
    """By mart, how it has ended."""
    return {line.mart: line.state for line in Reader(file_of(settings, "marts", RUN)).new() if line.state}


FUNNEL = {"holds_daily_funnel": ["daily_funnel"]}
OF_FUNNEL = {"holds_daily_funnel": "Got 1 result"}


def others(**known: State) -> dict[str, State]:
    """All marts; those that are not named were skipped."""
    return dict.fromkeys(tables.mart_references(), State.SKIPPED) | known


def test_a_mart_that_fails_for_a_lasting_reason_is_red_alone(settings: Settings) -> None:
    run_of_dbt(MartsFailed("dbt build failed", OF_FUNNEL, lasting=True), 1, FUNNEL)
    assert ends(settings) == others(daily_orders=State.SUCCESS, daily_funnel=State.FAILED)


def test_what_may_pass_is_tried_again_before_a_mart_is_red(settings: Settings) -> None:
    failure = MartsFailed("the server was restarted", OF_FUNNEL)
    with pytest.raises(MartsFailed):
        run_of_dbt(failure, 1, FUNNEL)
    assert ends(settings) == {}
    run_of_dbt(failure, 2, FUNNEL)
    assert ends(settings) == others(daily_orders=State.SUCCESS, daily_funnel=State.FAILED)


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (ConnectionError("no server"), {}),
        (MartsFailed("cannot be parsed"), {}),
        # A test of no mart has no task.
        (MartsFailed("dbt build failed", {"order_lines_have_their_order": "Got 2 results"}, lasting=True), {}),
    ],
)
def test_a_failure_that_has_no_task_of_its_own_fails_the_run_of_dbt(
    settings: Settings, error: Exception, failed: Mapping[str, list[str]]
) -> None:
    with pytest.raises(type(error)):
        run_of_dbt(error, 2, failed)
    assert ends(settings) == others(daily_orders=State.SUCCESS)


def test_a_view_of_gold_that_failed_before_is_not_hidden_by_a_mart(settings: Settings) -> None:
    error = MartsFailed("dbt build failed", OF_FUNNEL, lasting=True)
    error.__context__ = ConnectionError("a view")
    with pytest.raises(MartsFailed):
        run_of_dbt(error, 2, FUNNEL)
