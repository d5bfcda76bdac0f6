"""A task that is killed, wherever it is, leaves nothing that its retry does not put right."""

import pytest

CRASH_POINTS = {
    "its range was planned (P0)": "range-planned",
    "bronze was committed and the task not acknowledged (P3)": "bronze-committed",
    "quarantine was committed and silver not (P4)": "quarantine-committed",
    "silver was committed and gold not (P5)": "silver-committed",
}


@pytest.mark.parametrize("when", CRASH_POINTS)
def test_nothing_is_lost_or_doubled_by_a_task_killed_when(when, scene):
    scene.task_dies_at(CRASH_POINTS[when], nth=1)
    scene.recovers()


def test_a_write_that_outlives_its_killed_task_is_not_there_twice(scene):
    """P1."""
    scene.task_dies_while_the_server_reads_for_it(nth=1)
    scene.recovers()


def test_a_replay_killed_between_its_promotion_and_the_record_of_it_is_finished_and_undone(scene):
    """P12."""
    scene.replay_dies_before_its_record()
