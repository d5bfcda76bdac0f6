"""The demo fails with a reason: when waiting does not help, and when it takes too long."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lockstep.airflow_api import Airflow, AirflowRefused, AirflowSilent, Run
from lockstep.status.model import Status, ViewStatus
from shop.demo.facts import Fact
from shop.demo.run import DemoFailed, raise_on_failure, run_now, wait_for_facts, wait_until_parsed

LOGS = Path("airflow/logs")
ALL_RIGHT = Status([], [])


@dataclass
class FakeAirflow:
    """An Airflow with these DAGs, runs and import errors."""

    parsed: list[str]
    done: list[Run] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

    def dags(self) -> dict[str, bool]:
        return dict.fromkeys(self.parsed, False)

    def newest_runs(self) -> list[Run]:
        return self.done

    def import_errors(self) -> dict[str, str]:
        return self.errors


def airflow(*parsed: str, done: list[Run] | None = None, errors: dict[str, str] | None = None) -> Airflow:
    return cast(Airflow, FakeAirflow(list(parsed), done or [], errors or {}))


def test_a_dag_that_is_never_parsed_fails_the_demo_with_the_error_of_its_file() -> None:
    broken = airflow("ingest", errors={"refine.py": "SyntaxError: invalid syntax"})
    with pytest.raises(DemoFailed, match=r"(?s)has not parsed all of \['ingest', 'refine'\].*refine.py: SyntaxError"):
        wait_until_parsed(broken, {"ingest", "refine"}, seconds=0)
    wait_until_parsed(airflow("ingest", "refine", "more"), {"ingest", "refine"}, seconds=0)


@pytest.mark.parametrize(("paused", "asked"), [(True, ["unpause"]), (False, ["trigger"])])
def test_a_dag_that_is_unpaused_is_not_triggered_too_since_airflow_runs_it_at_once(
    paused: bool, asked: list[str]
) -> None:
    calls: list[str] = []
    one = SimpleNamespace(
        dags=lambda: {"marts": SimpleNamespace(paused=paused)},
        unpause=lambda _: calls.append("unpause"),
        trigger=lambda _: calls.append("trigger"),
    )
    run_now(cast(Airflow, one), "marts")
    assert calls == asked


def test_a_run_that_failed_for_good_stops_the_demo_and_is_named_with_the_logs() -> None:
    runs = [Run("ingest", "run-2", "failed", None), Run("ingest", "run-1", "success", None)]
    with pytest.raises(DemoFailed, match=r"(?s)gave up on:\n  ingest run-2\n.*airflow/logs") as failure:
        raise_on_failure(airflow("ingest", "refine", done=runs), ALL_RIGHT, LOGS)
    assert "run-1" not in str(failure.value)


def test_views_that_differ_stop_the_demo_and_are_named_with_a_sample() -> None:
    different = ViewStatus("ad_ctr", 9, 0, 0, "2026-11-20T10:00:00", windows=5, unexplained=2, sample="10:00 ad-7")
    with pytest.raises(DemoFailed, match="ad_ctr: 2 windows differ, such as 10:00 ad-7"):
        raise_on_failure(airflow("ingest"), Status([], [different]), LOGS)


def test_while_nothing_has_failed_the_demo_goes_on() -> None:
    raise_on_failure(airflow("ingest", done=[Run("ingest", "run-1", "running", None)]), ALL_RIGHT, LOGS)


def test_facts_that_do_not_come_true_in_time_fail_the_demo_and_are_named() -> None:
    facts = [Fact("bronze", True, "0 offsets behind"), Fact("silver", False, "3 offsets behind")]
    with pytest.raises(
        DemoFailed, match="still missing:\n  silver: 3 offsets behind\nSee `lockstep status`"
    ) as failure:
        wait_for_facts(lambda: (ALL_RIGHT, facts), seconds=0)
    assert "bronze" not in str(failure.value)


def test_the_demo_ends_with_the_status_in_which_every_fact_is_true() -> None:
    assert wait_for_facts(lambda: (ALL_RIGHT, [Fact("bronze", True, "")]), seconds=0) is ALL_RIGHT


def test_an_airflow_that_is_too_busy_to_answer_once_does_not_end_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    looks = iter([AirflowSilent("read timed out"), (ALL_RIGHT, [Fact("bronze", True, "")])])

    def look() -> tuple[Status, list[Fact]]:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    assert wait_for_facts(look, seconds=60) is ALL_RIGHT


@pytest.mark.parametrize(("error", "seconds"), [(AirflowSilent("read timed out"), 0), (AirflowRefused("403"), 60)])
def test_one_that_stays_silent_or_refuses_ends_it_with_its_own_words(error: AirflowRefused, seconds: float) -> None:
    def look() -> tuple[Status, list[Fact]]:
        raise error

    with pytest.raises(type(error), match=str(error)):
        wait_for_facts(look, seconds=seconds)
