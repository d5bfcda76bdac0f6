"""The two tasks of each mart: what they take from the run of dbt, and when they build or test their mart themselves."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import set_current_context
from airflow.triggers.base import TaskFailedEvent, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from lockstep import airflow_mart_trigger, airflow_task, marts_tasks
from lockstep.airflow_mart_trigger import MartTrigger
from lockstep.airflow_marts import MartTask, told
from lockstep.lineage import assets, tables
from lockstep.marts.dbt_project import MartsFailed
from lockstep.marts.progress import Box, Kind, Line, Progress, Reader, State, file_of
from lockstep.settings import Settings

RUN = "manual__2026-11-26T05:00:00+00:00"
DAY = ("2026-11-25T00:00:00+00:00", "2026-11-26T00:00:00+00:00")


def run_of(mart: str) -> Box:
    return Box(mart, Kind.RUN)


def of_tests(mart: str) -> Box:
    return Box(mart, Kind.TEST)


ORDERS, TESTS = run_of("daily_orders"), of_tests("daily_orders")


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


def event_of(
    attempt: Try, states: Mapping[str, str | None], monkeypatch: pytest.MonkeyPatch, box: Box = ORDERS
) -> TriggerEvent:
    """The event with which the trigger of a box ends, where Airflow's tasks have these states."""
    monkeypatch.setattr(airflow_mart_trigger, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(Try, "get_task_states", staticmethod(lambda **_: {RUN: states}), raising=False)
    trigger = MartTrigger([*box], "build", ["marts.other.run"])
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
@pytest.mark.parametrize("box", [ORDERS, TESTS])
def test_a_box_ends_as_the_run_of_dbt_says_and_its_log_has_what_was_said_of_it(
    progress: Progress,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: State,
    event: type,
    box: Box,
) -> None:
    attempt = Try()
    progress.say("of all")
    progress.say("of this one", box)
    for other in {ORDERS, TESTS, run_of("daily_funnel")} - {box}:
        progress.end(other, State.FAILED, "of another one")
    progress.end(box, state, "the end")
    capsys.readouterr()
    assert isinstance(event_of(attempt, {"build": "running"}, monkeypatch, box), event)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("]")[2].partition("[")[0].strip() for line in lines] == ["of all", "of this one", "the end"]


def test_airflow_can_keep_a_trigger_in_its_database_and_make_it_again() -> None:
    trigger = MartTrigger([*TESTS], "build", ["marts.other.run"])
    name, arguments = trigger.serialize()
    assert json.loads(json.dumps(arguments)) == arguments
    again = MartTrigger(**arguments)
    assert name.endswith("airflow_mart_trigger.MartTrigger")
    assert (again.box, again.builder, again.others) == (TESTS, "build", ["marts.other.run"])


@pytest.mark.parametrize("box", [ORDERS, TESTS])
def test_a_box_that_was_cleared_after_the_run_does_its_own_work(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, box: Box
) -> None:
    progress.end(box, State.FAILED, "of the try before")
    cleared = Try(2, created=time.time() + 1)
    event = event_of(cleared, {"build": "success", "marts.other.run": "success"}, monkeypatch, box)
    assert event.payload == "cleared"


@pytest.mark.parametrize("builder", ["build", "marts.other.run"])
def test_a_mart_that_was_cleared_waits_for_another_task_that_builds_it(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    states: dict[str, str | None] = {"build": "success", "marts.other.run": "success", builder: None}

    class Said(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            progress.end(ORDERS, State.SUCCESS, "built by the other")
            return states.get(key, default)

    cleared = Try(2)
    assert isinstance(event_of(cleared, Said(), monkeypatch), TaskSuccessEvent)


def test_a_mart_of_which_a_run_that_was_killed_has_said_nothing_is_skipped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(event_of(Try(), {"build": "failed", "marts.other.run": "success"}, monkeypatch), TaskSkippedEvent)


def test_the_tests_of_a_mart_wait_for_whoever_builds_it_or_what_it_is_made_from() -> None:
    tests, run = (task(box, ["daily_customers"]).start_trigger_args for box in (TESTS, ORDERS))
    assert run and run.trigger_kwargs
    assert run.trigger_kwargs["others"] == ["marts.daily_customers.run", "marts.daily_customers.test"]
    assert tests and tests.trigger_kwargs
    assert tests.trigger_kwargs["others"] == [*run.trigger_kwargs["others"], "marts.daily_orders.run"]


CUSTOMERS = run_of("daily_customers")
HOLDS = {"holds_daily_customers": [of_tests("daily_customers")]}


def task(box: Box, made_from: Sequence[str] = ()) -> MartTask:
    return MartTask(task_id=f"marts.{box.mart}.{box.kind}", box=box, builder="build", made_from=[*made_from])


def clear(
    monkeypatch: pytest.MonkeyPatch,
    box: Box,
    found: Mapping[Box, State],
    failed: Mapping[str, list[Box]] | None = None,
    waiting: Sequence[str] = (),
) -> list[str]:
    """Clear a task: dbt makes this of the boxes; these tasks wait for it."""

    def builds(box: Box, run_id: str, results: object, progress: Progress) -> list[str]:
        for other, state in found.items():
            progress.found(other, state)
        progress.failed |= failed or {}
        if failed:
            raise MartsFailed(f"{box.mart} of {run_id} failed", dict.fromkeys(failed, "Got 1 result"), lasting=True)
        return [box.mart]

    def states(**asked: Any) -> dict[str, dict[str, str]]:
        return {RUN: {name: "deferred" if name in waiting else "success" for name in asked["task_ids"]}}

    monkeypatch.setattr(marts_tasks, "build_mart", builds)
    monkeypatch.setattr(airflow_task, "_publish", lambda _: None)
    monkeypatch.setattr(assets, "emit", lambda: None)
    ti = SimpleNamespace(dag_id="marts", run_id=RUN, get_task_states=states)
    return task(box).execute({"dag_run": SimpleNamespace(dag_id="marts", run_id=RUN), "run_id": RUN, "ti": ti})


def test_a_mart_that_builds_itself_says_how_those_end_that_wait_for_it(
    progress: Progress, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY)
    with pytest.raises(MartsFailed, match="daily_customers of manual__"):
        clear(monkeypatch, CUSTOMERS, {CUSTOMERS: State.FAILED}, {"daily_customers": [CUSTOMERS]})
    names = ("customer_lifetime_value", "customer_cohorts")
    follow = {Box(name, kind) for name in names for kind in Kind}
    assert ends(settings) == dict.fromkeys(follow | {of_tests("daily_customers")}, State.SKIPPED)


def test_tests_that_run_again_say_nothing_of_marts_that_they_have_not_built(
    progress: Progress, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY)
    assert clear(monkeypatch, TESTS, {TESTS: State.SUCCESS}) == ["daily_orders"]
    assert ends(settings) == {}


def test_tests_that_had_to_build_what_they_test_end_all_that_was_built(
    progress: Progress, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY, ["holds_daily_orders"])
    clear(monkeypatch, TESTS, {ORDERS: State.SUCCESS, TESTS: State.SUCCESS, CUSTOMERS: State.SUCCESS})
    assert ends(settings) == {
        ORDERS: State.SUCCESS,
        CUSTOMERS: State.SUCCESS,
        of_tests("daily_customers"): State.SKIPPED,
    }


def test_tests_that_run_again_and_fail_are_red(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    progress.built(DAY)
    box = of_tests("daily_customers")
    with pytest.raises(MartsFailed):
        clear(monkeypatch, box, {box: State.FAILED}, HOLDS, ["marts.daily_customers.test"])


def test_a_mart_that_was_built_is_green_if_its_tests_wait_to_be_red(
    progress: Progress, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY)
    found = {CUSTOMERS: State.SUCCESS, of_tests("daily_customers"): State.FAILED}
    clear(monkeypatch, CUSTOMERS, found, HOLDS, ["marts.daily_customers.test"])
    assert ends(settings)[of_tests("daily_customers")] is State.FAILED


def test_a_mart_that_was_built_is_red_if_no_other_task_would_be(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY)
    found = {CUSTOMERS: State.SUCCESS, of_tests("daily_customers"): State.FAILED}
    with pytest.raises(MartsFailed):
        clear(monkeypatch, CUSTOMERS, found, HOLDS)


def test_tests_that_are_cleared_where_there_are_none_are_skipped(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.built(DAY)
    with pytest.raises(AirflowSkipException, match="dbt ran no test of it"):
        clear(monkeypatch, TESTS, {})


@pytest.mark.parametrize("box", [CUSTOMERS, TESTS])
def test_a_mart_of_a_run_that_has_built_nothing_is_skipped(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, box: Box
) -> None:
    with pytest.raises(AirflowSkipException, match="Clear the task that runs dbt"):
        clear(monkeypatch, box, {})


def run_of_dbt(error: Exception | None, try_number: int, failed: Mapping[str, list[Box]] | None = None) -> None:
    """A task of two attempts, in which dbt has built one mart and then failed."""
    context = {
        "dag_run": SimpleNamespace(dag_id="marts", run_id=RUN),
        "ti": SimpleNamespace(task_id="build", try_number=try_number, max_tries=1),
    }
    with set_current_context(cast(Any, context)), told() as progress:
        progress.found(ORDERS, State.SUCCESS)
        progress.failed |= failed or {}
        for boxes in (failed or {}).values():
            progress.found(boxes[0], State.FAILED)
        progress.built(DAY, [*(failed or {})])
        if error:
            raise error


def lines(settings: Settings) -> list[Line]:
    return [*Reader(file_of(settings, "marts", RUN)).new()]


def ends(settings: Settings) -> dict[Box, State]:
    """By box, how it has ended."""
    return {line.box: line.state for line in lines(settings) if line.box and line.state}


FUNNEL = {"holds_daily_funnel": [of_tests("daily_funnel")]}
OF_FUNNEL = {"holds_daily_funnel": "Got 1 result"}


def others(known: Mapping[Box, State]) -> dict[Box, State]:
    """All boxes; those that are not named were skipped."""
    boxes = (Box(mart, kind) for mart in tables.mart_references() for kind in Kind)
    return dict.fromkeys(boxes, State.SKIPPED) | known


def test_where_a_run_is_left_out_each_box_is_skipped_and_says_why(settings: Settings) -> None:
    with pytest.raises(AirflowSkipException):
        run_of_dbt(AirflowSkipException("This run is left out."), 1)
    assert {state for box, state in ends(settings).items() if box != ORDERS} == {State.SKIPPED}
    assert {line.text for line in lines(settings) if line.state} == {"This run is left out."}


def test_a_test_that_fails_is_red_alone_and_a_mart_says_that_it_was_built_but_not_published(settings: Settings) -> None:
    run_of_dbt(MartsFailed("dbt build failed", OF_FUNNEL, lasting=True), 1, FUNNEL)
    assert ends(settings) == others({ORDERS: State.SUCCESS, of_tests("daily_funnel"): State.FAILED})
    said = {line.box: line.text for line in lines(settings) if line.state}
    assert said[ORDERS].startswith("It was built, but is not published")


def test_a_mart_of_a_run_that_is_published_says_no_more_than_that_it_was_built(settings: Settings) -> None:
    run_of_dbt(None, 1)
    assert {line.box: line.text for line in lines(settings) if line.state}[ORDERS] == "It was built."


def test_what_may_pass_is_tried_again_before_a_mart_is_red(settings: Settings) -> None:
    failure = MartsFailed("the server was restarted", OF_FUNNEL)
    with pytest.raises(MartsFailed):
        run_of_dbt(failure, 1, FUNNEL)
    assert ends(settings) == {}
    run_of_dbt(failure, 2, FUNNEL)
    assert ends(settings) == others({ORDERS: State.SUCCESS, of_tests("daily_funnel"): State.FAILED})


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
    settings: Settings, error: Exception, failed: Mapping[str, list[Box]]
) -> None:
    with pytest.raises(type(error)):
        run_of_dbt(error, 2, failed)
    assert ends(settings) == others({ORDERS: State.SUCCESS})


def test_a_view_of_gold_that_failed_before_is_not_hidden_by_a_mart(settings: Settings) -> None:
    error = MartsFailed("dbt build failed", OF_FUNNEL, lasting=True)
    error.__context__ = ConnectionError("a view")
    with pytest.raises(MartsFailed):
        run_of_dbt(error, 2, FUNNEL)
