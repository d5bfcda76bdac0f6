"""A new generation of a query: nothing that it writes is skipped, and no row is half counted."""

import os
import time

import pytest

from lockstep.checkpoints import resets
from lockstep.checkpoints.errors import Refused
from lockstep.checkpoints.tidy import tidy
from lockstep.ingest.offsets import topic_offsets
from lockstep.live import generations
from lockstep.reconcile.run import reconcile


def reset(spark, settings, view, to):
    return resets.reset(settings, resets.plan(spark, settings, view, to), "a test", "tester")


def spoil(spark, view):
    """Rows that no event has led to, so that one sees which are computed again."""
    spark.sql(f"UPDATE live.{view.name} SET views = 9")


def test_a_query_can_be_reset_to_a_time_to_offsets_and_to_the_beginning(
    spark, settings, stream, view, minutes, batch, live, counts, place
):
    minutes(range(4))
    batch()
    live()
    spoil(spark, view)
    assert reset(spark, settings, view, "2026-11-10T10:01:30Z") == 2
    live()
    assert counts() == [("10:00", 9), ("10:01", 9), ("10:02", 2), ("10:03", 2)], "only whole windows after the time"

    # Half of minute 2 lies below these offsets, so minute 3 is the first of which it has every event.
    held = topic_offsets(settings, stream.topic).partitions
    ours = max(held, key=lambda p: held[p][1])
    spoil(spark, view)
    assert reset(spark, settings, view, ",".join(f"{p}={5 if p == ours else 0}" for p in held)) == 3
    minutes(range(4, 6))
    live()
    old, new = [("10:00", 9), ("10:01", 9), ("10:02", 9)], [("10:03", 2), ("10:04", 2), ("10:05", 2)]
    assert counts() == old + new

    spark.sql(f"UPDATE live.{view.name} SET page = 'which nobody has viewed'")
    assert reset(spark, settings, view, "earliest") == 4
    live()
    assert counts() == [(f"10:0{minute}", 2) for minute in range(6)]
    batch()
    assert [(r.view, r.verdict) for r in reconcile(spark, settings, [view], "run")] == [(view.name, "equal")]

    # Batch has seen no more than the live query, so the windows from minute 5 on are open.
    with pytest.raises(Refused, match="half counted"):
        reset(spark, settings, view, "2026-11-10T10:07:00Z")
    assert generations.current(settings, view.name) == 4

    root = place().parent
    long_ago = time.time() - (settings.retain_hours + 1) * 3600
    for file in [root / "1", root / "4", *(root / "1").rglob("*"), *(root / "4").rglob("*")]:
        os.utime(file, (long_ago, long_ago))
    assert f"{view.name}/1" in tidy(settings)
    assert sorted(one.name for one in root.iterdir()) == ["2", "3", "4"], "what is young, or runs, stays"


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("0=0,1=0,2=999999", "out of range"),
        ("0=0", "give an offset for each"),
        ("0=0,1=0,2=0,7=0", "and for no other"),
        ("clicks:0=0", "reads"),
        ("yesterday", "not where a query can begin"),
        ("2026-11-10T10:00:00", "with its zone"),
        ("2026-11-10T10:00:00Z", "final not at all yet"),
    ],
)
def test_what_is_no_place_to_begin_is_refused_with_a_sentence(to, reason, spark, settings, view, stream):
    with pytest.raises(Refused, match=reason):
        resets.plan(spark, settings, view, to)
    assert generations.current(settings, view.name) == 1
