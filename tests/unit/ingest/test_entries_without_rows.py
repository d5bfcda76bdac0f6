"""An entry of bronze's ledger that takes no rows."""

from typing import Any

import pytest
from tests.support.simulation import streams
from tests.support.simulation.seams import installed, playing
from tests.support.simulation.world import World

from lockstep import ledger
from lockstep.definition.columns import BRONZE
from lockstep.definition.tables import bronze_of
from lockstep.ingest.bronze import commit_without_rows
from lockstep.ledger.ranges import Range

CONTRACT = next(iter(streams.CONTRACTS.values()))
TABLE = bronze_of(CONTRACT)


@pytest.fixture
def world() -> Any:
    """A world without faults, in which bronze has an empty table."""
    world = World(1)
    world.faults = type(world.faults)(0.0, 0.0, 0.0)
    world.lake.create(TABLE, BRONZE)
    with installed(), playing(world):
        yield world


def test_it_moves_the_ledger_and_its_head_and_writes_no_row(world: Any) -> None:
    ranges = [Range(CONTRACT.topic, "id", 0, 0, 7)]
    record = ledger.record("ingest", None, "run", ranges, epochs={0: 3})
    entry = commit_without_rows(world, world, TABLE, record)
    assert (entry.seq, entry.ranges, ledger.latest(world, TABLE)) == (1, tuple(ranges), entry)
    assert (world.heads[TABLE].seq, world.heads[TABLE].ends) == (1, {0: 7})
    assert world.rows(TABLE) == []


def test_a_second_try_commits_nothing_more(world: Any) -> None:
    record = ledger.record("ingest", None, "run", [Range(CONTRACT.topic, "id", 0, 0, 7)], epochs={0: 3})
    first = commit_without_rows(world, world, TABLE, record)
    assert commit_without_rows(world, world, TABLE, record) == first
    assert len(list(ledger.entries(world, TABLE))) == 1
