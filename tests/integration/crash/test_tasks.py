"""A task may be killed anywhere: its retry puts everything right."""

import pytest
from tests.support.slow import slow

FAILPOINTS = {
    "its range was planned (P0)": "range-planned",
    "bronze was committed and the task not acknowledged (P3)": "bronze-committed",
    "quarantine was committed and silver not (P4)": "quarantine-committed",
    "silver was committed and gold not (P5)": "silver-committed",
    "a view's machines were saved and its gold not committed (P5)": "machines-saved",
}
# The simulation, which is in the gate too, dies at each of them.
IN_THE_GATE = {
    "bronze was committed and the task not acknowledged (P3)",
    "a view's machines were saved and its gold not committed (P5)",
}


@pytest.mark.parametrize("large", [[], slow(["--large"])], ids=["small slices", "large slices"])
@pytest.mark.parametrize("when", [when if when in IN_THE_GATE else slow(when) for when in FAILPOINTS])
def test_nothing_is_lost_or_doubled_by_a_task_killed_when(when, large, scenario):
    scenario.task_dies_at(FAILPOINTS[when], 1, *large)
    scenario.recovers()


def test_a_write_that_outlives_its_killed_task_is_not_there_twice(scenario):
    """P1."""
    scenario.task_dies_while_the_server_reads_for_it(nth=1)
    scenario.recovers()


def test_nothing_is_lost_by_housekeeping_killed_while_it_compacts_or_vacuums(scenario):
    """P9."""
    scenario.traffic.burst(200)
    scenario.recovers()
    scenario.housekeeping_dies_while_compacting()
    scenario.traffic.burst(200)
    scenario.recovers()
    scenario.housekeeping_dies_while_vacuuming(nth=1)
    scenario.recovers()


def test_a_replay_killed_before_its_promotion_is_promoted_by_a_second_try(scenario):
    """P10."""
    scenario.replay_dies_before_its_promotion()


def test_a_replay_killed_between_its_promotion_and_the_record_of_it_is_finished_and_undone(scenario):
    """P11."""
    scenario.replay_dies_before_its_record()
