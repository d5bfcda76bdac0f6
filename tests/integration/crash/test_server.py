"""The Spark server is killed at the points that lie inside it; the supervisor and the retries put everything right."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.e2e import oracle
from tests.integration.crash.driver import kill, supervised, task
from tests.integration.crash.flow import drain, windows
from tests.integration.crash.watch import until

from lockstep import lake
from lockstep.ingest import ledger
from lockstep.session import connect
from lockstep.stack.stack import Stack

MONTHS_AGO = time.time() - 60 * 86400


@pytest.fixture
def kill_server(stack: Stack) -> Iterator[Callable[[], None]]:
    """Kill the Spark server at once. When the test is over, it is back."""
    server = psutil.Process(stack.pid("spark"))

    def now() -> None:
        os.kill(server.pid, signal.SIGKILL)
        server.wait(30)

    yield now
    stack.wait_healthy("spark")


def back(stack: Stack) -> None:
    """Wait until the supervisor has started it again."""
    stack.wait_healthy("spark")


def directory(settings, table) -> Path:
    return Path(lake.path(settings, table))


def is_complete(file: Path) -> bool:
    """Whether a Parquet file has been written to its end."""
    content = file.read_bytes()
    return len(content) > 8 and content.endswith(b"PAR1")


def test_rows_were_staged_and_the_log_was_not_written(settings, stack, stream, traffic, kill_server, recovers):
    """P2."""
    bronze = directory(settings, f"bronze.{stream.name}")
    with traffic.flowing(), task(stream.name) as process:
        until(lambda: any(map(is_complete, bronze.glob("part-*.parquet"))))
        kill_server()
        kill(process)
    assert ledger.latest(settings, bronze_of(stream)) is None, "too late"
    back(stack)
    recovers()
    assert len(list(bronze.glob("part-*.parquet"))) > 1


def bronze_of(stream):
    return f"bronze.{stream.name}"


def test_a_checkpoint_of_the_delta_log_was_being_written(settings, stack, stream, view, traffic, kill_server, recovers):
    """P8."""
    traffic.burst(60)
    drain(settings, stream, view, "before")
    with connect(settings, "test") as spark:
        spark.sql(f"ALTER TABLE {bronze_of(stream)} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    log = directory(settings, bronze_of(stream)) / "_delta_log"
    before = {*log.iterdir()}
    with traffic.flowing(), task(stream.name) as process:
        until(lambda: [file for file in {*log.iterdir()} - before if ".checkpoint." in file.name])
        kill_server()
        kill(process)
    back(stack)
    recovers()


def test_small_files_were_being_compacted(settings, stack, stream, view, traffic, kill_server, recovers):
    """P9, OPTIMIZE."""
    small = settings.model_copy(update={"max_offsets_per_run": 30})
    traffic.burst(80)
    drain(small, stream, view, "before")
    bronze = directory(settings, bronze_of(stream))
    before = {*bronze.glob("part-*.parquet")}
    with task(stream.name, "--maintain") as process:
        until(lambda: {*bronze.glob("part-*.parquet")} - before)
        kill_server()
        kill(process)
    traffic.burst(20)
    back(stack)
    recovers()


def test_old_files_were_being_removed(settings, stack, stream, view, traffic, kill_server, recovers):
    """P9, VACUUM."""
    traffic.burst(80)
    drain(settings, stream, view, "before")
    bronze = directory(settings, bronze_of(stream))
    left_behind = bronze / "part-00000-of-a-write-that-never-was.parquet"
    left_behind.touch()
    os.utime(left_behind, (MONTHS_AGO, MONTHS_AGO))
    orphans = [left_behind.with_name(f"part-00000-left-{n}.parquet") for n in range(5000)]
    for orphan in orphans:
        os.link(left_behind, orphan)
    with task(stream.name, "--maintain") as process:
        until(lambda: sum(1 for _ in bronze.iterdir()) < len(orphans))
        kill_server()
        kill(process)
    assert any(orphan.exists() for orphan in orphans), "too late"
    traffic.burst(20)
    back(stack)
    recovers()
    with task(stream.name, "--maintain") as process:
        assert process.wait(120) == 0
    assert not any(orphan.exists() for orphan in orphans)


def live_windows_are_right(settings, view, traffic):
    sent = sorted(traffic.sent, key=lambda r: (r["partition"], r["offset"]))
    return windows(settings, f"live.{view.name}") == dict(oracle.judge_page_views(sent)[0])


def becomes_right(settings, view, traffic):
    patiently = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))
    patiently(live_windows_are_right, settings, view, traffic)


@pytest.mark.parametrize("point", ["before commits/N (P6)", "while the state was committed (P7)"])
def test_a_live_query_was_killed(point, settings, stack, stream, view, traffic, kill_server, recovers):
    checkpoint = Path(lake.checkpoint(settings, view.name, ledger.GENERATION))
    log = directory(settings, f"live.{view.name}") / "_delta_log"
    markers = {
        "before commits/N (P6)": lambda: [*log.glob(f"{3:020d}.json")],
        "while the state was committed (P7)": lambda: [*checkpoint.glob("state/*/*/*3.changelog*")],
    }
    with supervised(stream.name, "--live"):
        with traffic.flowing(most=400):
            until(markers[point])
            kill_server()
            batches = [int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()]
            committed = [int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit()]
            back(stack)
        assert max(batches) == max(committed) + 1, "too late, or too early"
        recovers()
        becomes_right(settings, view, traffic)
