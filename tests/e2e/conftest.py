"""The whole platform, once: the demo over two days, with the Spark server, the broker and the scheduler killed in it."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console
from tenacity import RetryError, Retrying, retry_if_not_result, retry_if_result, stop_after_delay, wait_fixed
from tests.support.ports import own_ports
from tests.support.receivers import Web, served

from lockstep import ledger
from lockstep import settings as configuration
from lockstep.settings import Settings
from lockstep.stack.stack import Stack
from lockstep.status.model import Status
from shop.demo.run import Demo
from shop.simulate.simulation import HEARTBEAT_AFTER

DAYS = 1
HTTP = "airflow.providers.http.notifications.HttpNotifier"


@dataclass
class Played:
    """A demo that has reached its verdict.

    Args:
        web: the webhook that gets the notices of problems.
        lineage: the receiver of OpenLineage's events.
        killed: the processes that were killed on the way, by service.
    """

    stack: Stack
    status: Status
    today: datetime
    web: Web
    lineage: Web
    killed: dict[str, int] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.stack.settings


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests have measured."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{name}: {value:.0f}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whichever test comes first waits for the whole demo, which takes a quarter of an hour on a slow machine."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "demo" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2400))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Run the demo to its end, while somebody kills three of its processes."""
    with pytest.MonkeyPatch.context() as patch, served(Web()) as web, served(Web()) as lineage:
        patch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{lineage.server_address[1]}")
        patch.setenv("AIRFLOW_CONN_OPS", f"http://127.0.0.1:{web.server_address[1]}")
        patch.setenv("LOCKSTEP_NOTIFIERS", json.dumps([{"class": HTTP, "http_conn_id": "ops"}]))
        own_ports(patch, tmp_path_factory.mktemp("demo"))
        running = Demo(configuration.load(), Console(force_terminal=False, width=140), DAYS)
        killed: dict[str, int] = {}
        killer = threading.Thread(target=kill_each, args=(running.stack, killed), daemon=True)
        killer.start()
        try:
            # The history ends before this day.
            today = datetime.now(UTC) - HEARTBEAT_AFTER
            status = running.run()
            killer.join(timeout=1)
            yield Played(running.stack, status, today, web, lineage, killed)
        finally:
            reset(running.stack)


def reset(stack: Stack) -> None:
    """Remove the stack, and see that it leaves no process, not even one that hides from its own user."""
    session = os.getsid(stack.supervisor.pid()) if stack.supervisor.running() else None
    stack.reset()
    if session:
        with suppress(RetryError):  # the supervisor's own parent ends last
            Retrying(stop=stop_after_delay(10), wait=wait_fixed(0.1), retry=retry_if_result(bool))(members, session)
        assert members(session) == []


def members(session: int) -> list[psutil.Process]:
    """The processes of a session: all of a stack's are in its supervisor's, but for those of PostgreSQL."""
    processes = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            # A zombie has ended: the supervisor's own parent is a child of this process, which has not read its exit code.
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


def kill_each(stack: Stack, killed: dict[str, int]) -> None:
    """Kill the scheduler, the broker and the Spark server with data on its way, one after another."""
    # Each when there is something to lose: a first layer has rows, and the next service is healthy again.
    wanted: list[tuple[str, Callable[[], object]]] = [
        ("airflow-scheduler", lambda: ledger.latest(stack.settings, "bronze.page_views")),
        ("kafka", lambda: ledger.latest(stack.settings, "silver.page_views")),
        ("spark", lambda: stack.health(["kafka"])["kafka"].healthy),
    ]
    for service, ready in wanted:
        Retrying(stop=stop_after_delay(600), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))(ready)
        pid = stack.pid(service)
        if pid:
            os.kill(pid, signal.SIGKILL)
            killed[service] = pid
