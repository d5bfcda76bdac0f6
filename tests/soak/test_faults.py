"""Faults that are not the end of one process: servers that hang, a power cut, a full disk, and a clock that jumps.

With everything on, in a project of its own on a small disk. What a fault lets through is counted in both layers after it, without
a manual step; the power cut alone needs what a person does after one: ``lockstep up``. Mounting the disk needs root.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.clock import Clock
from tests.support.elsewhere import STREAM, Elsewhere, produce, project_in
from tests.support.receivers import Web, served

HTTP = "airflow.providers.http.notifications.HttpNotifier"
# Longer than the platform's own timeouts of a connection and of a look at a service's health.
SECONDS_OF_A_FAULT = 90
# Airflow's DAGs begin paused, and are there once its processor has read their files.
UNPAUSE = """
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from lockstep import settings
from lockstep.airflow_api import connected

with connected(settings.load()) as airflow:
    attempts = Retrying(stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_not_result(bool))
    attempts(lambda: airflow.dags().keys() >= {"ingest", "refine", "reconcile", "marts", "rollup_daily", "maintain"})
    for dag in airflow.dags().values():
        if dag.schedule:
            airflow.unpause(dag.name)
"""
DISK = "6g"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("only root may mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def web() -> Iterator[Web]:
    with served(Web()) as running:
        yield running


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture
def acme(disk: Path, web: Web, clock: Clock) -> Iterator[Elsewhere]:
    """A project that runs, with a stream and a view of each kind."""
    with project_in(disk / "acme") as project:
        project.env.update(clock.env)
        told = json.dumps([{"class": HTTP, "http_conn_id": "web"}])
        address = f"AIRFLOW_CONN_WEB=http://127.0.0.1:{web.server_address[1]}"
        (project.cwd / ".env").write_text(f"{address}\nLOCKSTEP_NOTIFIERS={told}\n")
        project.run("lockstep", "new", *STREAM.split())
        project.run("lockstep", "new", "view", "returns_per_minute", "--input", "returns")
        project.run("lockstep", "new", "view", "returns_numbered", "--input", "returns", "--keyed")
        project.run("lockstep", "up")
        project.run("python", "-c", UNPAUSE)
        yield project


class Returns:
    """What was sent, and whether the lake has it."""

    def __init__(self, acme: Elsewhere, clock: Clock) -> None:
        self.acme, self.clock, self.sent = acme, clock, 0

    def send(self, rows: int = 50) -> None:
        ids = range(self.sent, self.sent + rows)
        at = f"{self.clock.now():%FT%TZ}"
        events = [{"return_id": f"r{n}", "returned_at": at, "order_id": f"o{n % 7}", "refund": "1.00"} for n in ids]
        produce(self.acme, "returns", events, "order_id")
        self.sent += rows

    def counted(self) -> dict[str, int]:
        """The rows of each layer; without those that do not answer."""
        late = "SELECT count(*) FROM late.{0}"
        parts = {
            "silver": "SELECT count(DISTINCT return_id) FROM silver.returns",
            "gold": f"SELECT (SELECT sum(events) FROM gold.returns_per_minute) + ({late.format('returns_per_minute')})",
            "live": "SELECT (SELECT sum(events) FROM serving.returns_per_minute) + "
            f"({late.format('returns_per_minute')})",
        }
        statement = "SELECT " + ", ".join(f"({query}) AS {name}" for name, query in parts.items())
        command = ("lockstep", "sql", "--csv", statement)
        done = subprocess.run(command, cwd=self.acme.cwd, env=self.acme.env, capture_output=True, text=True)
        rows = done.stdout.splitlines()
        if done.returncode or len(rows) < 2:
            return {}
        return dict(zip(rows[0].split(","), (int(value or 0) for value in rows[1].split(",")), strict=True))

    def all_counted(self) -> bool:
        found = self.counted()
        return bool(found) and set(found.values()) == {self.sent}


@pytest.fixture
def returns(acme: Elsewhere, clock: Clock) -> Returns:
    return Returns(acme, clock)


def pid(acme: Elsewhere, service: str) -> int:
    """The process of a service, by the supervisor's own command."""
    code = "from lockstep import settings; from lockstep.stack.stack import Stack; "
    code += f"print(Stack(settings.load()).pid({service!r}))"
    return int(acme.run("python", "-c", code))


def tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def hang(acme: Elsewhere, service: str) -> Callable[[Returns], None]:
    def fault(returns: Returns) -> None:
        stopped = tree(psutil.Process(pid(acme, service)))
        for process in stopped:
            process.suspend()
        try:
            if service != "kafka":
                returns.send()
            time.sleep(SECONDS_OF_A_FAULT)
        finally:
            for process in stopped:
                if process.is_running():
                    process.resume()

    return fault


def power_cut(acme: Elsewhere) -> Callable[[Returns], None]:
    def fault(_: Returns) -> None:
        supervisor = psutil.Process(int((acme.cwd / ".lockstep" / "run" / "supervisord.pid").read_text()))
        keeper = supervisor.parent()
        assert keeper
        # All stand still first, so that none sees another one end.
        ended = tree(keeper)
        for process in ended:
            process.suspend()
        for process in ended:
            process.kill()
        psutil.wait_procs(ended, 30)
        acme.run("lockstep", "up")

    return fault


def full_disk(disk: Path) -> Callable[[Returns], None]:
    def fault(returns: Returns) -> None:
        filler = disk / "filler"
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            except OSError:
                pass
        time.sleep(SECONDS_OF_A_FAULT)
        filler.unlink()

    return fault


def jump(clock: Clock, shift: timedelta) -> Callable[[Returns], None]:
    """All processes see it, and so does who sends the records."""

    def fault(returns: Returns) -> None:
        clock.set(shift)
        returns.send()
        time.sleep(SECONDS_OF_A_FAULT)
        returns.send()
        clock.set(timedelta(0))

    return fault


@pytest.mark.timeout(3 * 3600)
def test_what_came_before_during_and_after_a_fault_is_counted_in_both_layers(acme, disk, clock, web, returns, report):
    faults = {
        "Spark hangs": hang(acme, "spark"),
        "PostgreSQL hangs": hang(acme, "postgres"),
        "Kafka hangs": hang(acme, "kafka"),
        "a power cut": power_cut(acme),
        "a full disk": full_disk(disk),
        "the clock is an hour behind": jump(clock, -timedelta(hours=1)),
        "the clock is two minutes ahead": jump(clock, timedelta(minutes=2)),
    }
    returns.send()
    _settled(acme, returns, "at the start")
    for name, fault in faults.items():
        if os.environ.get("LOCKSTEP_SOAK_FAULT", "") not in name:
            continue
        told = len(web.taken)
        returns.send()
        fault(returns)
        over = time.monotonic()
        _settled(acme, returns, name, again=True)
        lines = [line for _, body in web.taken[told:] for line in json.loads(body)["text"].splitlines()]
        report(f"| {name} | all counted after {time.monotonic() - over:.0f} s | {' / '.join(lines)} |")
    acme.run("lockstep", "airflow", "dags", "trigger", "reconcile")
    _settled(acme, returns, "at the end")
    status = json.loads(acme.run("lockstep", "status", "--json"))
    assert {view["name"]: view["verdict"] for view in status["views"]} == {
        "returns_per_minute": "equal",
        "returns_numbered": "equal",
    }


def _settled(acme: Elsewhere, returns: Returns, when: str, again: bool = False) -> None:
    """Wait until all is right and every row is counted. ``again``: as soon as something can be sent, more is."""
    attempts = Retrying(stop=stop_after_delay(900), wait=wait_fixed(5), retry=retry_if_not_result(bool))
    command = ("lockstep", "status", "--json")

    def right() -> bool:
        nonlocal again
        done = subprocess.run(command, cwd=acme.cwd, env=acme.env, capture_output=True, text=True)
        if again and done.returncode == 0:
            returns.send()
            again = False
        return done.returncode == 0 and returns.all_counted()

    try:
        attempts(right)
    except RetryError:
        said = subprocess.run(("lockstep", "status"), cwd=acme.cwd, env=acme.env, capture_output=True, text=True)
        pytest.fail(f"{when}: {returns.counted()} of {returns.sent}\n{said.stdout}\n{said.stderr}")
