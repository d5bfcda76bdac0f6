"""Thousands of seeds of the simulation, of which 200 are in the gate, and errors that it must find: docs/simulation.md."""

import os

import pytest
from tests.support.simulation import seams
from tests.support.simulation.mutations import MUTATIONS
from tests.support.simulation.run import Failure, play

SEEDS = int(os.environ.get("LOCKSTEP_SOAK_SIMULATIONS", "10000"))
# Seeds until an error must be found. The rarest needs a kill in the moment in which a partition is added.
ENOUGH = 2000


@pytest.fixture(scope="module", autouse=True)
def installed():
    with seams.installed():
        yield


def first_failure(seeds):
    """The first seed that breaks an invariant, and what it says; None: none does."""
    for seed in range(seeds):
        try:
            play(seed)
        except Failure as failure:
            return seed, failure.invariant
    return None


@pytest.mark.timeout(7200)
def test_no_seed_breaks_an_invariant():
    broken = {}
    for seed in range(SEEDS):
        try:
            play(seed)
        except Failure as failure:
            broken[seed] = str(failure)
    assert broken == {}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MUTATIONS)
def test_an_error_in_the_code_is_found(name, monkeypatch, capsys):
    MUTATIONS[name](monkeypatch)
    found = first_failure(ENOUGH)
    assert found is not None
    with capsys.disabled():
        print(f"\n{name}: seed {found[0]}: {found[1]}")  # the table of docs/simulation.md
