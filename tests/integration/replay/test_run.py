"""Replays of random intervals put right what is wrong in them, and change nothing else. Many more are in tests/soak."""

import random
from datetime import timedelta

import pytest
from tests.support.digest import digest
from tests.support.shop import START
from tests.support.slow import slow

from lockstep import lake
from lockstep.control import intervals
from lockstep.replay import run
from lockstep.replay.record import find
from lockstep.replay.request import ReplayRefused

LAYERS = [["gold"], ["silver", "gold"], ["bronze", "silver", "gold"]]
MINUTES = 20


def traffic(shop, batch, dice: random.Random) -> None:
    """Three runs over twenty minutes, with ids that come twice and rows that come late."""
    for n in range(60):
        second, after = dice.randrange(60 * MINUTES), dice.expovariate(1)
        shop.view(f"e{dice.randrange(50)}", second, arrives_after=after, user_id=f"u{n % 7}")
        if n % 20 == 19:
            shop.flush()
            batch()


def spoil(spark, stream, view, layers, minutes) -> None:
    """Make the interval wrong in every layer that is replayed: rows of bronze are lost, all others say something else."""
    low, high = (f"TIMESTAMP '{START + timedelta(minutes=m)}'" for m in minutes)
    spark.sql(f"UPDATE gold.{view.name} SET views = 9999 WHERE window_start >= {low} AND window_start < {high}")
    if "silver" in layers:
        spark.sql(
            f"UPDATE silver.{stream.name} SET page = '/spoiled' WHERE event_time >= {low} AND event_time < {high}"
        )
    if "bronze" in layers:
        spark.sql(f"DELETE FROM bronze.{stream.name} WHERE timestamp >= {low} AND timestamp < {high}")


# With this one, all that the last run has in the interval is duplicates.
@pytest.mark.parametrize(
    ("layers", "seed"),
    [
        (LAYERS[0], None),
        *(slow(layers, None) for layers in LAYERS[1:]),
        (LAYERS[-1], 2658508260),
    ],
    ids=str,
)
def test_a_replay_of_a_random_interval_gives_back_the_digests_from_before_it_was_spoiled(
    layers, seed, spark, settings, stream, view, shop, batch, asked, redone
):
    seed = seed or random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    traffic(shop, batch, dice)
    tables = [f"bronze.{stream.name}", f"silver.{stream.name}", f"gold.{view.name}"]
    before = {table: digest(settings, table) for table in tables}
    # At least five minutes, so that there are rows in it.
    low = dice.randrange(MINUTES - 5)
    minutes = (low, dice.randrange(low + 5, MINUTES + 1))
    spoil(spark, stream, view, layers, minutes)
    spoiled = {table for table in tables if digest(settings, table) != before[table]}
    assert spoiled == {table for table in tables if table.partition(".")[0] in layers}, "the digest sees it"
    replay = redone(asked(minutes=minutes, layers=layers))
    assert replay.state == "promoted"
    assert replay.compared.changed > 0
    assert {table: digest(settings, table) for table in tables} == before


def test_a_reason_that_looks_like_sql_is_promoted_and_recorded_as_it_is(
    spark, settings, view, shop, batch, asked, redone, rows
):
    shop.view("e1", 10)
    shop.flush()
    batch()
    # Of the tables of others, some go meanwhile.
    own = {table for table in _tables(settings) if table.endswith(view.name[-8:])}
    before = digest(settings, f"gold.{view.name}")
    reason = f"'); DROP TABLE gold.{view.name}; --"
    replay = redone(asked(reason=reason))
    assert replay.state == "promoted"
    assert find(settings, replay.id).request.reason == reason
    assert {row["reason"] for row in rows("ops.replays") if row["replay"] == replay.id} == {reason}
    assert digest(settings, f"gold.{view.name}") == before
    assert own <= _tables(settings)


def test_a_replay_that_died_before_it_was_recorded_can_be_discarded(spark, settings, view):
    intervals.claim(settings, "abc123", {f"gold.{view.name}": intervals.ALWAYS})
    run.discard(spark, settings, "abc123", "test", "me")
    assert not intervals.holds(settings, "abc123")
    with pytest.raises(ReplayRefused, match="There is no replay abc123"):
        run.discard(spark, settings, "abc123", "test", "me")


def _tables(settings):
    """All tables but shadows: those of other tests' replays come and go."""
    return {table for table in lake.tables(settings) if not table.startswith("shadow.")}
