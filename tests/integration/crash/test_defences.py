"""Each defence is needed: without it, the same scenario ends wrong."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.integration.crash import defences
from tests.integration.crash.driver import run_until_killed, task
from tests.integration.crash.flow import recover, violations
from tests.integration.crash.watch import appears

from lockstep.catalog import connect
from lockstep.errors import LedgerBroken
from lockstep.ingest import bronze
from lockstep.lake import writes


def test_without_the_transaction_id_a_write_that_outlives_its_task_is_there_twice(
    settings, stream, view, traffic, tmp_path
):
    reading = tmp_path / "reading"
    traffic.burst(20)
    with task(stream.name, "--large", f"--stall={reading}", "--without=transaction-id"):
        appears(reading)
    recover(settings, stream, view)
    assert violations(settings, stream, view, traffic.sent) == []
    Path(f"{reading}.go").touch()
    patiently = Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_not_result(bool))
    broken = patiently(violations, settings, stream, view, traffic.sent)
    assert any("I2: twice in bronze" in one for one in broken), broken


def test_with_the_head_moved_before_the_commit_a_crash_between_them_needs_a_person(settings, stream, view, traffic):
    traffic.burst(20)
    run_until_killed(stream.name, "head-moved:1", "--without=order")
    with pytest.raises(LedgerBroken, match="newest commit is gone"):
        recover(settings, stream, view)
    assert any("I1: acknowledged, but not in bronze" in one for one in violations(settings, stream, view, traffic.sent))


@pytest.mark.parametrize("lease", ["with the lease", "without the lease"])
def test_two_writers_of_one_table_do_not_meet(lease, settings, stream, view, traffic, monkeypatch):
    traffic.burst(20)
    recover(settings, stream, view)
    traffic.burst(100)
    if lease == "without the lease":
        defences.without_lease(monkeypatch.setattr)
    # Writes of Spark take long enough to meet. Of two small commits, the second one usually finds the first one's number.
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    outcomes = _race(settings, stream, monkeypatch)
    monkeypatch.undo()
    recover(settings, stream, view)
    refusals = [str(outcome) for outcome in outcomes if isinstance(outcome, Exception)]
    if lease == "with the lease":
        assert refusals == []
    else:
        assert [re.search("DELTA_CONCURRENT_[A-Z]+", refusal) is not None for refusal in refusals] == [True], refusals
    assert violations(settings, stream, view, traffic.sent) == []


def _race(settings, stream, monkeypatch):
    """Two ingests that write at the same moment, if they can; what each returned or raised."""
    both, plan = threading.Barrier(2), bronze.plan

    def together(*arguments):
        ranges = plan(*arguments)
        with suppress(threading.BrokenBarrierError):
            both.wait(4)
        return ranges

    monkeypatch.setattr(bronze, "plan", together)

    def run(name):
        with connect(settings, name) as spark:
            return bronze.ingest(spark, settings, stream, name)

    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(run, name) for name in ("one", "other")]
    return [run.exception() or run.result() for run in runs]
