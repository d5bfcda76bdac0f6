"""Each crash point ten times, at a random pass and with random traffic."""

import os
import random

import pytest
from tests.integration.crash.scenes import PLAYS

ROUNDS = int(os.environ.get("LOCKSTEP_SOAK_CRASHES", "10"))


@pytest.mark.parametrize("round_number", range(ROUNDS))
@pytest.mark.parametrize("point", PLAYS)
def test_the_invariants_hold_after_a_crash_at(point, round_number, scene, report):
    seed = scene.traffic.seed
    scene.prepared()
    PLAYS[point](scene, random.Random(seed))
    scene.recovers()
    sent = len(scene.traffic.sent)
    report(f"| {round_number} | {seed} | {point} | {scene.recovered_in:.0f} | {sent} | True |")
