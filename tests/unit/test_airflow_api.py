"""Airflow's API as the platform uses it: what is asked, and what is made of the answers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.ports import free_ports

from lockstep.airflow_api import AirflowRefused, Dag, Run, connected
from lockstep.orchestration import POOLS
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import airflow_services

NOON = "2026-01-02T12:00:00Z"
DAYS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC))


@dataclass
class Server:
    """An API that answers from ``answers``, and keeps what it is asked.

    Args:
        answers: by method and path, the status and the body; or what makes them of the body that was sent.
    """

    url: str = ""
    answers: dict[str, tuple[int, Any] | Callable[[Any], tuple[int, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, list[str]], Any]] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)

    def settings(self, home: Path) -> Settings:
        return Settings(home=home, airflow_url=self.url, airflow_password="open sesame")


@contextmanager
def serving(server: Server) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = json.loads(body) if body else None
            if parts.path == "/auth/token":
                right = given == {"username": "admin", "password": "open sesame"}
                status, content = (201, {"access_token": "a token"}) if right else (401, {"detail": "wrong"})
            else:
                asked = f"{self.command} {parts.path}"
                server.tokens.add(self.headers.get("Authorization"))
                server.asked.append((asked, parse_qs(parts.query), given))
                found = server.answers[asked]
                status, content = found(given) if callable(found) else found
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as http:
        server.url = f"http://{LOOPBACK}:{http.server_address[1]}"
        thread = Thread(target=http.serve_forever, args=[0.01])
        thread.start()
        yield
        http.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with serving(made):
        yield made


def dag(name: str, paused: bool = False, schedule: str | None = None) -> dict[str, Any]:
    texts = dict.fromkeys(("file_token", "fileloc"), "x")
    flags = "has_import_errors has_task_concurrency_limits is_backfillable is_stale timetable_partitioned timetable_periodic"
    limits = {"max_active_tasks": 1, "max_consecutive_failed_dag_runs": 0}
    names = {"dag_id": name, "dag_display_name": name, "is_paused": paused, "timetable_summary": schedule}
    return names | texts | dict.fromkeys(flags.split(), False) | limits | {"owners": [], "tags": []}


def run(
    run_id: str, state: str, end: str | None = None, kind: str = "scheduled", dag: str = "ingest"
) -> dict[str, Any]:
    names = {"dag_id": dag, "dag_display_name": dag, "dag_run_id": run_id, "dag_versions": []}
    return names | {"state": state, "end_date": end, "run_after": NOON, "run_type": kind}


def pool(name: str) -> dict[str, Any]:
    slots = "slots deferred_slots occupied_slots open_slots queued_slots running_slots scheduled_slots"
    return {"name": name, "include_deferred": False} | dict.fromkeys(slots.split(), 1)


def test_every_request_carries_the_token_of_the_login(server: Server, tmp_path: Path) -> None:
    server.answers["GET /api/v2/dags"] = (
        200,
        {"dags": [dag("ingest", schedule="* * * * *"), dag("replay", paused=True)], "total_entries": 2},
    )
    with connected(server.settings(tmp_path)) as airflow:
        assert airflow.dags() == {
            "ingest": Dag("ingest", paused=False, schedule="* * * * *", file="x"),
            "replay": Dag("replay", paused=True, file="x"),
        }
    assert server.tokens == {"Bearer a token"}
    assert server.asked == [("GET /api/v2/dags", {"limit": ["100"]}, None)]


def test_a_wrong_password_is_refused(server: Server, tmp_path: Path) -> None:
    settings = server.settings(tmp_path)
    wrong = Settings(home=tmp_path, airflow_url=settings.airflow_url, airflow_password="guessed")
    with pytest.raises(AirflowRefused, match=r"login at http.*401"), connected(wrong):
        pass


def test_nobody_there_is_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, airflow_url=f"http://{LOOPBACK}:{free_ports(1)[0]}")
    with pytest.raises(AirflowRefused, match=r"Airflow's login at http.* failed"), connected(settings):
        pass


def test_what_airflow_refuses_is_told_with_its_own_words(server: Server, tmp_path: Path) -> None:
    server.answers["PATCH /api/v2/dags/nowhere"] = 404, {"detail": "DAG with id nowhere was not found"}
    with (
        connected(server.settings(tmp_path)) as airflow,
        pytest.raises(AirflowRefused, match=r"refused to unpause the DAG nowhere \(404\): .*was not found"),
    ):
        airflow.unpause("nowhere")


def test_a_server_that_goes_away_is_told_with_where_its_log_is(tmp_path: Path) -> None:
    server = Server()
    with serving(server):
        session = connected(server.settings(tmp_path))
        airflow = session.__enter__()
    with pytest.raises(AirflowRefused, match=r"did not answer when asked to list the DAGs.*lockstep logs airflow-api"):
        airflow.dags()


def test_an_answer_of_another_version_is_refused(server: Server, tmp_path: Path) -> None:
    server.answers["GET /api/v2/dags"] = 200, {"dags": [{"dag_id": "ingest"}], "total_entries": 1}
    with (
        connected(server.settings(tmp_path)) as airflow,
        pytest.raises(AirflowRefused, match=r"(?s)asked to list the DAGs.*is_paused.*LOCKSTEP_AIRFLOW_URL"),
    ):
        airflow.dags()


def test_a_dag_is_unpaused(server: Server, tmp_path: Path) -> None:
    server.answers["PATCH /api/v2/dags/ingest"] = 200, dag("ingest")
    with connected(server.settings(tmp_path)) as airflow:
        airflow.unpause("ingest")
    assert server.asked == [("PATCH /api/v2/dags/ingest", {}, {"is_paused": False})]


def test_a_dag_is_run_now(server: Server, tmp_path: Path) -> None:
    server.answers["POST /api/v2/dags/ingest/dagRuns"] = 200, run("manual", "queued")
    with connected(server.settings(tmp_path)) as airflow:
        airflow.trigger("ingest")
    assert [asked for asked, _, _ in server.asked] == ["POST /api/v2/dags/ingest/dagRuns"]


def test_import_errors_are_by_file(server: Server, tmp_path: Path) -> None:
    error = {"import_error_id": 1, "filename": "a.py", "stack_trace": "no such module", "timestamp": NOON}
    server.answers["GET /api/v2/importErrors"] = 200, {"import_errors": [error], "total_entries": 1}
    with connected(server.settings(tmp_path)) as airflow:
        assert airflow.import_errors() == {"a.py": "no such module"}


def test_a_pool_is_created_or_changed(server: Server, tmp_path: Path) -> None:
    server.answers["GET /api/v2/pools"] = 200, {"pools": [pool("spark")], "total_entries": 1}
    server.answers["PATCH /api/v2/pools/spark"] = 200, pool("spark")
    server.answers["POST /api/v2/pools"] = 201, pool("marts")
    with connected(server.settings(tmp_path)) as airflow:
        airflow.ensure_pools({"spark": (2, "of Spark"), "marts": (1, "of dbt")})
    assert server.asked[1:] == [
        (
            "PATCH /api/v2/pools/spark",
            {},
            {"pool": "spark", "slots": 2, "description": "of Spark", "include_deferred": False},
        ),
        ("POST /api/v2/pools", {}, {"name": "marts", "slots": 1, "description": "of dbt", "include_deferred": False}),
    ]


def test_before_airflow_counts_as_started_its_pools_are_there_and_the_api_of_its_tasks_has_been_asked(
    server: Server, tmp_path: Path
) -> None:
    server.answers["GET /api/v2/pools"] = 200, {"pools": [*map(pool, POOLS)], "total_entries": len(POOLS)}
    server.answers |= {f"PATCH /api/v2/pools/{name}": (200, pool(name)) for name in POOLS}
    server.answers["GET /execution/health"] = 200, {"status": "healthy"}
    airflow_services.post_start(server.settings(tmp_path))
    assert [asked for asked, _, _ in server.asked][1:] == [
        *(f"PATCH /api/v2/pools/{name}" for name in POOLS),
        "GET /execution/health",
    ]


def test_runs_come_newest_first_with_their_state_and_end(server: Server, tmp_path: Path) -> None:
    found = [run("b", "running"), run("a", "success", NOON)]
    server.answers["GET /api/v2/dags/ingest/dagRuns"] = 200, {"dag_runs": found, "total_entries": 2}
    with connected(server.settings(tmp_path)) as airflow:
        runs = airflow.runs("ingest", limit=7)
    assert [(r.dag, r.run_id, r.state) for r in runs] == [("ingest", "b", "running"), ("ingest", "a", "success")]
    assert [str(r) for r in runs] == ["running", "success 2026-01-02T12:00:00"]
    assert server.asked[0][1] == {"order_by": ["-run_after"], "limit": ["7"]}


ALL_RUNS = "POST /api/v2/dags/~/dagRuns/list"


def test_the_last_run_is_the_newest_that_has_ended(server: Server, tmp_path: Path) -> None:
    found = [run("c", "running"), run("b", "failed", NOON), run("d", "queued", dag="marts"), run("a", "success", NOON)]
    server.answers[ALL_RUNS] = 200, {"dag_runs": found, "total_entries": 4}
    with connected(server.settings(tmp_path)) as airflow:
        assert airflow.last_runs(["ingest", "replay", "marts"]) == {
            "ingest": Run("ingest", "b", "failed", "2026-01-02T12:00:00+00:00"),
            "marts": Run("marts", "d", "queued", None),
        }
    asked = {"dag_ids": ["ingest", "marts", "replay"], "order_by": "-run_after", "page_limit": 100}
    ((what, _, body),) = server.asked
    assert (what, {name: body[name] for name in asked}) == (ALL_RUNS, asked)


def test_a_failed_run_that_a_person_asked_for_hides_no_other(server: Server, tmp_path: Path) -> None:
    manual, backfill = run("c", "failed", NOON, "manual"), run("b", "failed", NOON, "backfill")
    found = [manual, backfill, run("a", "failed", NOON), run("c", "failed", NOON, "manual", dag="replay")]
    server.answers[ALL_RUNS] = 200, {"dag_runs": found, "total_entries": 4}
    with connected(server.settings(tmp_path)) as airflow:
        newest = airflow.last_runs(["ingest", "replay"])
    assert {dag: (r.run_id, r.asked_for) for dag, r in newest.items()} == {
        "ingest": ("a", False),
        "replay": ("c", True),
    }


def test_dags_that_run_often_hide_none_that_runs_rarely(server: Server, tmp_path: Path) -> None:
    """A page has a hundred runs. Those of today's minutes fill it, and last night's run is on no page of them."""
    often = [run(f"{n}", "success", NOON) for n in range(100)]
    rarely = [run("last night", "success", NOON, dag="rollup_daily")]

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        found = often if "ingest" in body["dag_ids"] else rarely
        return 200, {"dag_runs": found, "total_entries": len(found)}

    server.answers[ALL_RUNS] = answer
    with connected(server.settings(tmp_path)) as airflow:
        newest = airflow.last_runs(["ingest", "rollup_daily", "replay"])
    assert {dag: r.run_id for dag, r in newest.items()} == {"ingest": "0", "rollup_daily": "last night"}
    assert [body["dag_ids"] for _, _, body in server.asked] == [
        ["ingest", "replay", "rollup_daily"],
        ["replay", "rollup_daily"],
    ]


def test_a_hundred_runs_that_wait_hide_no_other_dag(server: Server, tmp_path: Path) -> None:
    waiting = [run(f"{n}", "queued", kind="backfill", dag="rollup_daily") for n in range(100)]
    failed = [run("an hour ago", "failed", NOON, dag="maintain")]

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        found = waiting if "rollup_daily" in body["dag_ids"] else failed
        return 200, {"dag_runs": found, "total_entries": len(found)}

    server.answers[ALL_RUNS] = answer
    with connected(server.settings(tmp_path)) as airflow:
        newest = airflow.last_runs(["maintain", "rollup_daily"])
    assert {dag: r.run_id for dag, r in newest.items()} == {"rollup_daily": "0", "maintain": "an hour ago"}
