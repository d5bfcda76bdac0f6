"""Processes that a service of a stack has started and does not know any more."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.stack import postgres
from lockstep.stack.stack import Stack


@pytest.fixture
def orphan_process() -> Iterator[Callable[[Stack], psutil.Process]]:
    """Have a stack's PostgreSQL start a process that loses its parent at once, in a session of its own."""
    started: list[psutil.Process] = []

    def start(stack: Stack) -> psutil.Process:
        command = ["sleep", f"600.{uuid.uuid4().int}"]
        with postgres.connected(stack.settings, "postgres") as database, database.cursor() as cursor:
            # The program reads what PostgreSQL writes to it, so that this does not end with a broken pipe.
            cursor.execute(f"COPY (SELECT) TO PROGRAM 'cat >/dev/null; setsid {' '.join(command)} >/dev/null 2>&1 &'")
        started.append(process_with(command))
        return started[-1]

    yield start
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def process_with(command: list[str]) -> psutil.Process:
    """The process with this command line, which may not have begun yet."""

    def find() -> psutil.Process | None:
        return next((each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == command), None)

    attempts = Retrying(
        stop=stop_after_delay(10), wait=wait_fixed(0.05), retry=retry_if_result(lambda process: not process)
    )
    process: psutil.Process = attempts(find)
    return process
