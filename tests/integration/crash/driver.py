"""A task in a process group of its own, which a test kills: ``python -m tests.integration.crash.driver <stream> [what]``."""

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.crash import defences, flow
from tests.integration.crash.watch import COLD
from tests.support.paths import CHECKOUT

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.failpoints import VARIABLE
from lockstep.lake import compaction, writes
from lockstep.maintain import maintain
from lockstep.service.__main__ import main as service_main

MAX_OFFSETS = 60


@contextmanager
def task(stream: str, *arguments: str, crash_at: str = "") -> Iterator["subprocess.Popen[bytes]"]:
    """Start the driver; whatever is left of its process group at the end of the block is killed."""
    env = os.environ | {"LOCKSTEP_MAX_OFFSETS_PER_RUN": str(MAX_OFFSETS)} | ({VARIABLE: crash_at} if crash_at else {})
    command = [sys.executable, "-m", "tests.integration.crash.driver", stream, *arguments]
    process = subprocess.Popen(command, cwd=CHECKOUT, env=env, start_new_session=True)
    try:
        yield process
    finally:
        kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group, as a failpoint does."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@contextmanager
def supervised(stream: str, *arguments: str) -> Iterator[None]:
    """Keep the driver running, as the stack's supervisor does with its parts, for as long as the block lasts."""
    stop = threading.Event()

    def keep() -> None:
        while not stop.is_set():
            with task(stream, *arguments) as process:
                while process.poll() is None and not stop.wait(0.1):
                    pass

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join()


def run_until_killed(stream: str, crash_at: str, *arguments: str) -> None:
    """Run the driver until its failpoint has killed it."""
    with task(stream, *arguments, crash_at=crash_at) as process:
        assert process.wait(COLD) == -signal.SIGKILL, f"it ended before {crash_at}"


def main() -> None:
    """Drain a stream, look after its tables, replay its view or keep it live; without one of the defences if so told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stream")
    parser.add_argument("--table", action="store_true", help="the stream is the changes of a table, without a view")
    parser.add_argument("--large", action="store_true", help="no slice is small: Spark reads and writes each")
    parser.add_argument("--maintain", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--replay", help="the name of the replay")
    parser.add_argument("--without", choices=defences.SWITCHES)
    parser.add_argument("--stall", help="reading waits until a file of this name and .go is there")
    parser.add_argument("--nth", type=int, default=1, help="the read that stalls")
    given: Any = parser.parse_args()
    os.environ["LOCKSTEP_VIEWS"] = "all"
    settings = configuration.load()
    if given.table:
        flow.drain(settings, flow.table_named(given.stream), (), "task")
        return
    stream, view = flow.stream_named(given.stream)
    CONTRACTS[stream.name] = stream
    VIEWS.clear()
    VIEWS.update({each.name: each for each in (view, *flow.shared_views(stream))})
    if given.large:
        writes.SMALL_ROWS = 0
    if given.without:
        defences.SWITCHES[given.without]()
    if given.stall:
        defences.stall(given.stall, given.nth)
    if given.maintain:
        # All files, however few.
        compaction.taken = sorted
        with connect(settings, "crash") as spark:
            maintain(spark, settings, [f"bronze.{stream.name}"], "task")
    elif given.replay:
        flow.replay(settings, view, given.replay)
    elif given.live:
        service_main()
    else:
        flow.drain(settings, stream, tuple(VIEWS.values()), "task")


if __name__ == "__main__":
    main()
