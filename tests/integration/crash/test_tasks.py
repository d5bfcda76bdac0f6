"""A task that is killed, wherever it is, leaves nothing that its retry does not put right."""

from pathlib import Path

import pytest
from tests.integration.crash.driver import run_until_killed, task
from tests.integration.crash.watch import appears

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


def test_a_write_that_outlives_its_killed_task_is_not_there_twice(stream, traffic, recovers, tmp_path):
    """P1: the task is killed while the server reads for it, and the server goes on."""
    recovers_while_the_server_goes_on(stream, traffic, recovers, tmp_path / "reading")


def recovers_while_the_server_goes_on(stream, traffic, recovers, reading: Path):
    with traffic.flowing(most=5), task(stream.name, f"--stall={reading}"):
        appears(reading)
    recovers()
    Path(f"{reading}.go").touch()
    recovers()
