"""The whole decision logic, played from seeds: what counts is in both layers, whatever happens. See docs/simulation.md."""

import os
from collections import Counter

import pytest
from tests.support.simulation import seams
from tests.support.simulation.run import VARIABLE, play

# One seed, to play a failure again.
SEEDS = [int(os.environ[VARIABLE])] if VARIABLE in os.environ else range(200)
# What the seeds must meet together, or they prove nothing.
MET = (
    "killed: after the write of",
    "killed: bronze-committed",
    "killed: machines",
    "killed: offsets of",
    "killed: quarantine-committed",
    "killed: range-planned",
    "killed: silver-committed",
    "killed: state of",
    "killed: write of",
    "a late write is committed",
    "a late write is skipped",
    "overtaken",
    "interleaved",
    "a producer aborts",
    "a partition is added",
    "replayed: nothing has changed",
    "replayed: somebody has spoiled rows of gold",
    "replayed: late rows count too, and then it is undone",
    "an undo restored the rows",
)


@pytest.fixture(scope="module", autouse=True)
def installed():
    with seams.installed():
        yield


def test_what_counts_is_in_both_layers_for_every_seed():
    met = sum((play(seed).met for seed in SEEDS), Counter())
    assert len(SEEDS) == 1 or [what for what in MET if not met[what]] == []


def test_a_seed_always_plays_the_same_run():
    (first, again) = (play(7) for _ in range(2))
    assert [*first.trace] == [*again.trace]
    assert first.met == again.met
