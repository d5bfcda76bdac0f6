"""The screen has the verdict first, and text for each typed fact."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from lockstep.airflow_api import Run
from lockstep.quality.outcomes import GateVerdict
from lockstep.status.model import AirflowStatus, Problem, Status, Stream, ViewStatus
from lockstep.status.screen import show, write

STATUS = Status(
    streams=[Stream("clicks", "clicks", log_end=10, bronze=10, silver=10, lag={"bronze": 0, "silver": 0})],
    views=[
        ViewStatus(
            "page_views_per_minute", 9, 1, 0, "2026-11-20T10:00:00+00:00", windows=5, unexplained=0, sample=None
        ),
        ViewStatus("ad_ctr", 0, 0, 0, None, windows=0, unexplained=0, sample=None),
    ],
    health={"kafka": "stopped"},
    airflow=AirflowStatus(runs={"ingest": Run("ingest", "run-1", "failed", "2026-11-20T10:00:00+00:00")}),
    quality={"silver.clicks": GateVerdict(True, 14, 0, 3253), "silver.orders": GateVerdict(False, 14, 2, 3)},
    problems=[Problem("service:kafka", "kafka is stopped", "start it", datetime(2026, 11, 20, 10, tzinfo=UTC))],
)


def lines(status: Status) -> list[str]:
    console = Console(width=140, file=StringIO())
    write(status, console)
    assert isinstance(console.file, StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_the_problems_come_first() -> None:
    assert lines(STATUS)[:2] == ["Not all is right:", "- kafka is stopped (since 2026-11-20 10:00:00 UTC): start it"]
    assert lines(Status([], []))[0] == "All is right."


def test_a_problem_is_on_one_line_however_long_it_is() -> None:
    reason = "views/broken.py is left out: " + "a long path " * 10
    assert f"- {reason}(since 2026-11-20 10:00:00 UTC): mend it" in lines(
        replace(STATUS, problems=[replace(STATUS.problems[0], what=reason.strip(), fix="mend it")])
    )


def test_each_fact_is_printed_as_text() -> None:
    screen = lines(STATUS)
    assert "silver.clicks passed 14 checks on 3,253 rows" in screen
    assert "silver.orders FAILED 2 of 14 checks on 3 rows" in screen
    assert "page_views_per_minute 9 1 0 0 0 5 0 2026-11-20T10:00:00 equal" in screen
    assert "ad_ctr 0 0 0 0 0 0 0 - nothing compared yet" in screen
    assert "kafka stopped ingest failed 2026-11-20T10:00:00" in screen


def test_a_view_is_named_with_those_whose_results_it_reads() -> None:
    chained = replace(STATUS.views[1], name="pages_in_total", made_from=["page_views_per_minute", "user_sessions"])
    screen = lines(replace(STATUS, views=[chained]))
    first = screen.index("pages_in_total 0 0 0 0 0 0 0 - nothing compared yet")
    assert screen[first + 1 : first + 3] == ["← page_views_per_minute", "← user_sessions"]


def test_nothing_is_cut_in_whatever_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = replace(STATUS.streams[0], name="account_events", log_end=10**7, bronze=10**7, silver=10**7)
    view = replace(STATUS.views[0], name="activity_within_five_minutes", counted=10**7, windows=10**7)
    show(replace(STATUS, streams=[stream], views=[view]))
    screen = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "account_events 10,000,000 0 10,000,000 10,000,000 0 0 0 0 0 0 never" in screen
    assert "activity_within_five_minutes 10,000,000 1 0 0 0 10,000,000 0 2026-11-20T10:00:00 equal" in screen


def test_fields_that_no_contract_names_are_listed_where_there_are_any() -> None:
    title = "Fields that the contract does not name"
    assert title not in lines(STATUS)
    clicks = replace(STATUS.streams[0], unknown={"utm": 3, "campaign": 1200})
    screen = lines(replace(STATUS, streams=[clicks]))
    assert screen[screen.index(title) + 2] == "clicks campaign 1,200, utm 3"


def test_json_has_the_fields_of_each_fact() -> None:
    printed = json.loads(json.dumps(STATUS.as_dict()))
    assert printed["ok"] is False
    assert printed["quality"]["silver.orders"] == {
        "success": False,
        "checks": 14,
        "failed": 2,
        "rows": 3,
        "warned": 0,
    }
    assert printed["airflow"]["runs"]["ingest"]["state"] == "failed"
    assert [view["verdict"] for view in printed["views"]] == ["equal", "nothing compared yet"]
    assert printed["problems"][0]["since"] == "2026-11-20T10:00:00Z"
