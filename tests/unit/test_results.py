"""What a run did with each table, as the tab *Tables* of its page shows it."""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.paths import CHECKOUT

from lockstep import lineage
from lockstep.airflow_task import reported
from lockstep.results import KEY, WHOLE_TASK, Outcome, Results, TableResult

PAGE = CHECKOUT / "infra" / "airflow" / "plugins" / "run_tables.html"


@dataclass
class Airflow:
    """The task instance of a task that runs, in the place of Airflow's."""

    pushed: dict[str, Any] = field(default_factory=dict)
    away: Exception | None = None

    def xcom_push(self, key: str, value: Any) -> None:
        if self.away:
            raise self.away
        # As Airflow does: what is no JSON is refused.
        self.pushed[key] = json.loads(json.dumps(value))


class AirflowRuntimeError(Exception):
    """Stands for the error of Airflow's own whose constructor wants an answer of its API."""


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Airflow]:
    """Airflow's import takes seconds, so that of its names is answered here. What is emitted, test_assets.py knows."""
    task = Airflow()
    sdk = SimpleNamespace(get_current_context=lambda: {"ti": task})
    errors = SimpleNamespace(AirflowRuntimeError=AirflowRuntimeError)
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    monkeypatch.setitem(sys.modules, "airflow.sdk.exceptions", errors)
    monkeypatch.setitem(sys.modules, "lockstep.lineage.assets", SimpleNamespace(emit=lambda: None))
    monkeypatch.delattr(lineage, "assets", raising=False)
    yield task


def shown(results: Results) -> list[tuple[str, str, str]]:
    return [(row["table"], row["outcome"], row["detail"]) for row in results.as_rows()]


def ingested(_: Any, __: Any, stream: str, run_id: str) -> int | None:
    if stream == "clicks":
        raise ValueError("the topic is gone")
    return None if stream == "searches" else 7


def test_what_failed_is_at_the_top_with_its_reason_and_the_rest_has_its_rows() -> None:
    results = Results()
    work = results.each(ingested, "bronze.{}".format, lambda table, rows: TableResult(table, Outcome.DONE, rows))
    assert work(None, None, "sensors", "run") == 7
    assert work(None, None, "searches", "run") is None
    with pytest.raises(ValueError, match="the topic is gone"):
        work(None, None, "clicks", "run")
    results.nothing_new(["bronze.logins", "bronze.sensors"])
    rows = results.as_rows()
    assert [(row["table"], row["outcome"], row["rows"]) for row in rows] == [
        ("bronze.clicks", "failed", None),
        ("bronze.sensors", "done", 7),
        ("bronze.searches", "nothing new", None),
        ("bronze.logins", "nothing new", None),
    ]
    assert rows[0]["detail"] == "the topic is gone"
    assert all(row["seconds"] is not None for row in rows[:3])


def test_a_table_that_is_late_says_so_but_one_that_failed_or_waits_says_why_first() -> None:
    results = Results()
    results.add(
        TableResult("silver.clicks", Outcome.DONE, 7, detail="7 offsets"),
        TableResult("gold.trends", Outcome.WAITING, detail="silver.logins has not passed its gate"),
    )
    results.late({"silver.clicks": "lacks rows", "gold.trends": "lacks rows", "silver.sensors": "lacks rows"})
    assert shown(results) == [
        ("silver.clicks", "late", "7 offsets; lacks rows"),
        ("silver.sensors", "late", "lacks rows"),
        ("gold.trends", "waiting", "silver.logins has not passed its gate; lacks rows"),
    ]


def test_the_results_of_a_task_are_shown_on_the_page_of_its_run(airflow: Airflow) -> None:
    with reported() as results:
        results.add(TableResult("bronze.clicks", Outcome.DONE, 7))
    assert [(row["table"], row["rows"]) for row in airflow.pushed[KEY]] == [("bronze.clicks", 7)]


def test_a_task_that_fails_as_a_whole_says_why_on_the_page_beside_what_it_has_done(airflow: Airflow) -> None:
    with pytest.raises(ValueError, match="no Spark"), reported() as results:
        results.add(TableResult("bronze.clicks", Outcome.DONE, 7))
        raise ValueError("no Spark")
    assert [(row["table"], row["detail"]) for row in airflow.pushed[KEY]] == [
        (WHOLE_TASK, "ValueError: no Spark"),
        ("bronze.clicks", ""),
    ]


def test_a_task_whose_tables_say_why_it_failed_does_not_say_it_twice(airflow: Airflow) -> None:
    with pytest.raises(ValueError, match="1 failed"), reported() as results:
        results.add(TableResult("bronze.clicks", Outcome.FAILED, detail="the topic is gone"))
        raise ValueError("1 failed")
    assert [row["table"] for row in airflow.pushed[KEY]] == ["bronze.clicks"]


def test_that_airflows_api_is_away_does_not_decide_whether_a_task_succeeds(
    airflow: Airflow, caplog: pytest.LogCaptureFixture
) -> None:
    airflow.away = AirflowRuntimeError("API_SERVER_ERROR")
    with caplog.at_level(logging.WARNING), reported() as results:
        results.add(TableResult("bronze.clicks", Outcome.DONE, 7))
    assert caplog.messages == ["Airflow did not take the results for the page of the run: API_SERVER_ERROR"]


def test_the_page_reads_what_the_tasks_write_and_knows_how_to_colour_it() -> None:
    page = PAGE.read_text()
    assert f'const KEY = "{KEY}";' in page
    plain = {Outcome.NOTHING_NEW}
    assert [outcome for outcome in Outcome if outcome not in plain and f".{outcome}" not in page] == []
