"""A test that waits in vain for a run of Airflow says how every task of the run stands."""

from typing import Any

import httpx
import pytest
from tests.support.airflow import AirflowPages, TimeIsUp

TASKS = [
    {"task_id": "plan", "state": "success", "try_number": 1},
    {"task_id": "approve", "state": "awaiting_input", "try_number": 2},
    {"task_id": "erase", "state": None, "try_number": 0},
]
MISMATCH = {"when": "05:00", "event": "state mismatch", "task_id": "approve", "extra": "finished with state success"}


def answer(request: httpx.Request) -> httpx.Response:
    """What Airflow answers of a run whose question was asked a second time."""
    path = request.url.path.removeprefix("/api/v2/dags/erase/dagRuns/run")
    answers: dict[str, Any] = {
        "/auth/token": {"access_token": "open sesame"},
        "": {"state": "running"},
        "/hitlDetails": {"hitl_details": []},
        "/taskInstances": {"task_instances": TASKS},
        "/taskInstances/approve/logs/2": {"content": [{"event": f"line {number}"} for number in range(30)]},
        "/api/v2/eventLogs": {"event_logs": [MISMATCH]},
    }
    return httpx.Response(200, json=answers[path]) if path in answers else httpx.Response(404)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> AirflowPages:
    client = httpx.Client(base_url="http://airflow", transport=httpx.MockTransport(answer))
    monkeypatch.setattr(httpx, "Client", lambda **_: client)
    return AirflowPages("http://airflow", "password")


def test_a_run_that_does_not_end_is_told_with_its_tasks_and_their_logs(pages: AirflowPages) -> None:
    with pytest.raises(TimeIsUp) as caught:
        pages.ended("erase", "run", 0)
    told = str(caught.value)
    assert "the run run of erase is 'running'" in told
    assert "plan: success, try 1\napprove: awaiting_input, try 2\n" in told
    assert "try 2 | line 29" in told
    assert "line 9\n" not in told, "only the end of it"
    assert "try 1 | no log: Airflow answered 404" in told
    assert "erase: None, try 0" in told
    assert "state mismatch approve finished with state success" in told


def test_a_task_that_does_not_ask_is_told_the_same_way(pages: AirflowPages) -> None:
    with pytest.raises(TimeIsUp, match="approve: awaiting_input, try 2"):
        pages.asked("erase", "run", "approve", 0)
