"""Replays of random intervals change nothing, and backfills race with live ingest. Many more of both are in tests/soak."""

import random

import pytest
from tests.support import races
from tests.support.digest import digest

from lockstep import ledger

REPLAYS, RACES = 2, 1


def test_replays_of_random_intervals_leave_identical_digests(spark, settings, stream, view, shop, batch, asked, redone):
    dice = random.Random(4)
    for n in range(60):
        shop.view(
            f"e{dice.randrange(50)}", dice.randrange(1200), arrives_after=dice.expovariate(1), user_id=f"u{n % 7}"
        )
        if n % 20 == 19:
            shop.flush()
            batch()
    tables = (f"silver.{stream.name}", f"gold.{view.name}")
    before = [digest(spark.table(table)) for table in tables]
    for _ in range(REPLAYS):
        low = dice.randrange(19)
        layers = dice.choice((["gold"], ["silver", "gold"], ["bronze", "silver", "gold"]))
        replay = redone(asked(minutes=(low, dice.randrange(low + 1, 21)), layers=layers))
        assert replay.state == "promoted"
        assert [digest(spark.table(table)) for table in tables] == before


@pytest.mark.parametrize("seed", range(RACES))
def test_a_backfill_that_races_with_live_ingest_leaves_no_conflict_and_no_double_row(
    seed, spark, settings, stream, view, shop, batch, monkeypatch
):
    # Otherwise a backfill leaves alone what this very code has written.
    monkeypatch.setattr(ledger, "by_this_code", lambda *_: False)
    shop.view("first", 0)
    shop.flush()
    batch()
    expected = races.race(settings, stream, view, shop, random.Random(seed), rounds=2)
    expected["10:00", "/"] += 1
    assert races.shown(spark, view) == expected
    assert races.doubled(spark, stream, view) == []
