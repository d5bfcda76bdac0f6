"""Backfills race with live ingest. Many more races are in tests/soak."""

import random

import pytest
from tests.support import races

RACES = 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RACES))
def test_a_backfill_that_races_with_live_ingest_leaves_no_conflict_and_no_double_row(
    seed, spark, settings, stream, view, shop, batch
):
    shop.view("first", 0)
    shop.flush()
    batch()
    expected = races.race(settings, stream, view, shop, random.Random(seed), rounds=2)
    expected["10:00", "/"] += 1
    assert races.shown(spark, view) == expected
    assert races.doubled(spark, stream, view) == []
