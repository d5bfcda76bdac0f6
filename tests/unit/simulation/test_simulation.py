"""The whole decision logic, played from seeds: what counts is in both layers, whatever happens. See docs/simulation.md."""

import os
from collections import Counter

import pytest
from tests.support.simulation import seams
from tests.support.simulation.run import VARIABLE, Run, play
from tests.support.simulation.streams import CONTRACTS, HOPPING, PER_WINDOW
from tests.support.simulation.world import Faults, Killed

from lockstep.definition.view import BEGINNING, END
from lockstep.replay import run as replays
from lockstep.replay.request import Request

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
    "reconciled: equal",
)


@pytest.fixture(scope="module", autouse=True)
def installed():
    with seams.installed():
        yield


def test_what_counts_is_in_both_layers_for_every_seed():
    met = sum((play(seed).met for seed in SEEDS), Counter())
    assert len(SEEDS) == 1 or [what for what in MET if not met[what]] == []


def test_a_replay_that_dies_twice_while_it_is_opened_keeps_its_first_plan(monkeypatch):
    run = Run(7)
    world = run.world
    world.faults, world.small_rows = Faults(0, 0, 0), 20_000
    request = Request(reason="test", start=BEGINNING, end=END, layers=("gold",))

    def opened():
        return replays.open_replay(None, world, request, "me", run.run_id(), "twice")

    def dying(name):
        if name == "record of ops.replays":
            raise Killed(name)

    with seams.playing(world):
        for _ in range(100):
            run.producers.produce()
        run.producers.close(world.now + 600_000)
        for contract in CONTRACTS.values():
            run.ingest(contract)
            run.refine(contract)
        for view in (PER_WINDOW, HOPPING):
            run.roll_up(view)
            with monkeypatch.context() as deadly, pytest.raises(Killed):
                deadly.setattr(world, "place", dying)
                opened()
        plan = opened().plan
        replays.compute(None, world, "twice", run.run_id())
        assert [target.view for target in plan.targets] == [PER_WINDOW.name]
        assert replays.record.find(world, "twice").plan == plan


def test_a_seed_always_plays_the_same_run():
    (first, again) = (play(7) for _ in range(2))
    assert [*first.trace] == [*again.trace]
    assert first.met == again.met
