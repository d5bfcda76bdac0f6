"""Each failpoint ten times, at a random pass and with random traffic."""

import os
import random

import pytest
from tests.integration.crash.scenarios import BY_POINT, new_scenario
from tests.support.ports import SHORT_LIVED

ROUNDS = int(os.environ.get("LOCKSTEP_SOAK_CRASHES", "10"))


@pytest.fixture
def java():
    return SHORT_LIVED


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("point", BY_POINT)
def test_the_invariants_hold_after_each_crash_at(point, stack, report, tmp_path):
    for round_number in range(ROUNDS):
        with new_scenario(stack, tmp_path / f"{round_number}") as scenario:
            seed = scenario.traffic.seed
            scenario.prepared()
            BY_POINT[point](scenario, random.Random(seed))
            scenario.recovers()
            sent = len(scenario.traffic.sent)
            report(f"| {round_number} | {seed} | {point} | {scenario.recovered_in:.0f} | {sent} | True |")
