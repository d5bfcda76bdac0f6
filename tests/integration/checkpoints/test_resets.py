"""A new generation of a query: nothing that it writes is skipped, and no row is half counted."""

import pytest

from lockstep.checkpoints import generations, resets
from lockstep.checkpoints.errors import Refused
from lockstep.ingest.offsets import bounds
from lockstep.reconcile.run import reconcile

ALL = [("10:00", 2), ("10:01", 2), ("10:02", 2), ("10:03", 2)]


@pytest.fixture
def closed(minutes, batch, live):
    """Minutes 0 to 3 are played, and closed in both layers."""
    minutes(range(4))
    batch()
    live()


def reset(spark, settings, view, to):
    return resets.reset(settings, resets.plan(spark, settings, view, to), "a test", "tester")


def verdict(spark, settings, view):
    report = next(r for r in reconcile(spark, settings, "run") if r.view == view.name)
    return report.verdict


def test_a_reset_to_the_beginning_computes_everything_again_and_loses_what_was_wrong(
    spark, settings, view, closed, live, counts
):
    spark.sql(f"UPDATE live.{view.name} SET views = 9, page = 'wrong'")
    assert reset(spark, settings, view, "earliest") == 2
    live()
    assert counts() == ALL
    assert verdict(spark, settings, view) == "equal"


def test_a_reset_to_a_time_leaves_earlier_rows_and_counts_later_ones_again(spark, settings, view, closed, live, counts):
    spark.sql(f"UPDATE live.{view.name} SET views = 9")
    reset(spark, settings, view, "2026-11-10T10:01:30Z")
    live()
    assert counts() == [("10:00", 9), ("10:01", 9), ("10:02", 2), ("10:03", 2)]


def test_a_reset_to_offsets_writes_only_rows_of_which_it_has_every_event(
    spark, settings, stream, view, closed, live, counts, minutes
):
    # Half of minute 2 lies below these offsets, so minute 3 is the first that is whole.
    first_of = {p: first for p, (first, _) in bounds(settings, stream.topic).partitions.items()}
    ours = next(p for p, (first, last) in bounds(settings, stream.topic).partitions.items() if last - first > 1)
    to = ",".join(f"{p}={offset + (5 if p == ours else 0)}" for p, offset in first_of.items())
    spark.sql(f"UPDATE live.{view.name} SET views = 9")
    reset(spark, settings, view, to)
    minutes(range(4, 6))
    live()
    assert counts() == [("10:00", 9), ("10:01", 9), ("10:02", 9), ("10:03", 2), ("10:04", 2), ("10:05", 2)]


def test_a_reset_that_would_leave_rows_half_counted_is_refused(spark, settings, view, minutes, live):
    minutes(range(2))
    live()
    with pytest.raises(Refused, match="half counted"):
        reset(spark, settings, view, "2026-11-10T10:01:00Z")
    assert generations.current(settings, view.name) == 1


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("0=0,1=0,2=999999", "out of range"),
        ("0=0", "give an offset for each"),
        ("0=0,1=0,2=0,7=0", "and for no other"),
        ("clicks:0=0", "it reads|reads"),
        ("yesterday", "not where a query can begin"),
        ("2026-11-10T10:00:00", "with its zone"),
    ],
)
def test_what_is_no_place_to_begin_is_refused_with_a_sentence(to, reason, spark, settings, view, stream):
    with pytest.raises(Refused, match=reason):
        resets.plan(spark, settings, view, to)
    assert generations.current(settings, view.name) == 1
