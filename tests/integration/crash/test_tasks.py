"""A task that is killed, wherever it is, leaves nothing that its retry does not put right."""

from pathlib import Path

import pytest
from tests.integration.crash.driver import run_until_killed, task
from tests.integration.crash.flow import recover, replay, windows
from tests.integration.crash.watch import appears

from lockstep.replay import run
from lockstep.replay.record import find

CRASH_POINTS = {
    "the range was planned (P0)": "range-planned",
    "bronze was committed and the task not acknowledged (P3)": "bronze-committed",
    "quarantine was committed and silver not (P4)": "quarantine-committed",
    "silver was committed and gold not (P5)": "silver-committed",
}


@pytest.mark.parametrize("when", CRASH_POINTS)
def test_nothing_is_lost_or_doubled_by_a_task_killed_when(when, stream, traffic, recovers):
    with traffic.flowing():
        run_until_killed(stream.name, f"{CRASH_POINTS[when]}:2")
    recovers()


def test_a_replay_killed_between_its_promotion_and_the_record_of_it_is_finished_and_undone(
    spark, settings, stream, view, traffic, recovers
):
    """P12."""
    name, gold = f"crash-{stream.name[-8:]}", f"gold.{view.name}"
    traffic.burst(300)
    recover(settings, stream, view)
    right = windows(settings, gold)
    spark.sql(f"UPDATE {gold} SET views = 9999")
    with traffic.flowing():
        run_until_killed(stream.name, "shadow-promoted:1", f"--replay={name}")
    replay(settings, view, name)
    recovers()
    assert find(settings, name).state == "promoted"
    run.undo(spark, settings, name, "run", "tester")
    first = min(right)
    assert windows(settings, gold)[first] == 9999, "what it had replaced is back"


def test_a_write_that_outlives_its_killed_task_is_not_there_twice(stream, traffic, recovers, tmp_path):
    """P1: the task is killed while the server reads for it, and the server goes on."""
    reading = tmp_path / "reading"
    with traffic.flowing(most=5), task(stream.name, f"--stall={reading}"):
        appears(reading)
    recovers()
    Path(f"{reading}.go").touch()
    recovers()
