"""Processes that look as if a part of a stack had started them."""

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def sleeper() -> Iterator[Callable[[str, str], "subprocess.Popen[bytes]"]]:
    """Start a process as this supervisor's part would; in a group of its own, which the supervisor's signals do not reach."""
    started = []

    def start(server: str, part: str) -> "subprocess.Popen[bytes]":
        supervised = {"SUPERVISOR_SERVER_URL": server, "SUPERVISOR_PROCESS_NAME": part}
        started.append(subprocess.Popen(["sleep", "600"], env=os.environ | supervised, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
