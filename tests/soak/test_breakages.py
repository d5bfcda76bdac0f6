"""What breaks on a running stack is on the status and told within two minutes, and told as over after the repair."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.e2e.test_acme_project import PATIENCE
from tests.support.elsewhere import STREAM, Elsewhere, now, produce, project_in
from tests.support.receivers import Web, served

HTTP = "airflow.providers.http.notifications.HttpNotifier"
MINUTES_QUIET = int(os.environ.get("LOCKSTEP_SOAK_QUIET_MINUTES", "60"))
BROKEN = "from lockstep.definition import Windowed\n\nVIEW = Windowd()\n"
Break = tuple[str, Callable[[], object], Callable[[], object]]


@pytest.fixture
def web() -> Iterator[Web]:
    with served(Web()) as running:
        yield running


@pytest.fixture
def other() -> Iterator[Web]:
    """Somebody else who is told."""
    with served(Web()) as running:
        yield running


@pytest.fixture
def acme(tmp_path: Path, web: Web, other: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    """A project that runs, with a stream and a view, and all is right."""
    with project_in(tmp_path) as project:
        told = [{"class": HTTP, "http_conn_id": name} for name in ("web", "other")]
        addresses = {"web": web.server_address[1], "other": other.server_address[1]}
        lines = [f"AIRFLOW_CONN_{name.upper()}=http://127.0.0.1:{port}" for name, port in addresses.items()]
        (project.cwd / ".env").write_text("\n".join([*lines, f"LOCKSTEP_NOTIFIERS={json.dumps(told)}", ""]))
        project.run("lockstep", "new", *STREAM.split())
        project.run("lockstep", "new", "view", "returns_per_minute", "--input", "returns")
        # Airflow's folders of DAGs are those that exist when it starts.
        (project.cwd / "dags").mkdir()
        project.run("lockstep", "up")
        drive = Path(__file__).parents[1] / "e2e" / "drive_project.py"
        project.run("python", str(drive), str(PATIENCE))
        yield project


def lines_of(web: Web) -> list[str]:
    return [line for _, body in web.taken for line in json.loads(body)["text"].splitlines()]


def wait_for(web: Web, kind: str, wanted: list[str], seconds: float = 120) -> dict[str, float]:
    """Wait until each text was told; after how many seconds. The message names those that were not."""
    began, seen = time.monotonic(), dict[str, float]()

    def missing() -> list[str]:
        told = [line for line in lines_of(web) if line.startswith(kind)]
        for text in wanted:
            if text not in seen and any(text in line for line in told):
                seen[text] = time.monotonic() - began
        return [text for text in wanted if text not in seen]

    try:
        Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(1), retry=retry_if_result(bool))(missing)
    except RetryError as error:
        pytest.fail(f"{kind} was not told within {seconds} s: {error.last_attempt.result()}; told: {lines_of(web)}")
    return seen


def returned(acme: Elsewhere, *ids: str, at: str = "", order: str = "o1") -> None:
    events = [{"return_id": i, "returned_at": at or now(), "order_id": order, "refund": "1.00"} for i in ids]
    produce(acme, "returns", events, "order_id")


def breakages(acme: Elsewhere, other: Web) -> list[Break]:
    """What a notice has of each, how to break it, and how to repair it."""
    package, dag = acme.cwd / "spark" / "acme", acme.cwd / "dags" / "own.py"
    view, suite = package / "views" / "broken.py", acme.cwd / "expectations" / "silver" / "returns.json"
    sound = suite.read_text()
    strict = '"expectations": [\n    {"type": "expect_column_values_to_be_in_set", "kwargs": '
    strict += '{"column": "order_id", "value_set": ["nobody"]}},'

    def write(file: Path, text: str) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def new_and_not_applied() -> None:
        acme.run("lockstep", "new", "stream", "tips")
        acme.run("lockstep", "new", "view", "tips_per_minute", "--input", "tips")

    return [
        (
            "connect is stopped",
            lambda: acme.run("lockstep", "down", "connect"),
            lambda: acme.run("lockstep", "up", "connect"),
        ),
        (
            "DAG reconcile is paused",
            lambda: acme.run("lockstep", "airflow", "dags", "pause", "reconcile"),
            lambda: acme.run("lockstep", "airflow", "dags", "unpause", "reconcile"),
        ),
        (
            "Airflow cannot import",
            lambda: write(dag, "from airflow.sdk import dag\nimport no_such_module\n"),
            dag.unlink,
        ),
        ("broken.py is left out: line 3", lambda: write(view, BROKEN), view.unlink),
        ("tips has no topic", new_and_not_applied, lambda: acme.run("lockstep", "apply")),
        ("the live service does not run tips_per_minute", lambda: None, lambda: None),
        (
            "the gate of silver.returns is shut",
            lambda: (write(suite, sound.replace('"expectations": [', strict)), returned(acme, "g1")),
            lambda: write(suite, sound),
        ),
        ("notices could not be sent", lambda: other.answers.extend([500] * 6), other.answers.clear),
    ]


@pytest.mark.timeout(7200)
def test_ten_breakages_are_told_and_told_as_over_and_an_hour_without_trouble_says_nothing(acme, web, other, report):
    found = breakages(acme, other)
    texts = [text for text, _, _ in found]
    for _, break_it, _ in found:
        break_it()
    report(f"told after (s): {wait_for(web, 'NEW', texts, 240)}")
    problems = " ".join(p["line"] for p in json.loads(acme.run("lockstep", "status", "--json", code=1))["problems"])
    assert [text for text in texts if text not in problems] == []
    for _, _, repair in found:
        repair()
    report(f"over after (s): {wait_for(web, 'OVER', texts, 300)}")

    for service in ("spark", "postgres"):
        acme.run("lockstep", "down", service)
        report(f"told after (s): {wait_for(web, 'NEW', [f'{service} is stopped'])}")
        acme.run("lockstep", "up")
        report(f"over after (s): {wait_for(web, 'OVER', [f'{service} is stopped'], 240)}")

    old = now()[:11] + "00:00:00Z"
    returned(acme, *(f"late{n}" for n in range(120)), at=old)
    late = "rows of returns_per_minute came too late"
    report(f"told after (s): {wait_for(web, 'NEW', [late], 240)}")
    returned(acme, *(f"fresh{n}" for n in range(120)))
    report(f"over after (s): {wait_for(web, 'OVER', [late], 300)}")

    told = len(web.taken)
    time.sleep(MINUTES_QUIET * 60)
    assert [body.decode() for _, body in web.taken[told:]] == [], "an hour without trouble says nothing"
    acme.run("lockstep", "status")
