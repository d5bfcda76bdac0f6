"""Each failpoint ten times, at a random pass and with random traffic."""

import os
import random

import pytest
from tests.integration.crash.scenes import PLAYS, staged
from tests.support.ports import SHORT_LIVED

ROUNDS = int(os.environ.get("LOCKSTEP_SOAK_CRASHES", "10"))


@pytest.fixture
def java():
    return SHORT_LIVED


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("point", PLAYS)
def test_the_invariants_hold_after_each_crash_at(point, stack, report, tmp_path):
    for round_number in range(ROUNDS):
        with staged(stack, tmp_path / f"{round_number}") as scene:
            seed = scene.traffic.seed
            scene.prepared()
            PLAYS[point](scene, random.Random(seed))
            scene.recovers()
            sent = len(scene.traffic.sent)
            report(f"| {round_number} | {seed} | {point} | {scene.recovered_in:.0f} | {sent} | True |")
