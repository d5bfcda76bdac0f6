"""What the clocks show depends on the log, and not on how it is divided among micro-batches."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from lockstep.live.watermarks import EventStream, Watermarks

STREAMS = {"orders": EventStream([0, 1], 2_000), "views": EventStream([0], 500)}
# Stream, partition, timestamp. Partition 2 is not known when the query starts.
RECORDS = st.lists(
    st.tuples(st.sampled_from(["orders", "views"]), st.integers(0, 2), st.integers(10_000, 60_000)), max_size=30
)
CLOCKS = ("orders", "views", "orders,views")


def run(records, cuts=()):
    """The watermark after each record, and what the clocks show after each micro-batch."""
    watermarks, after, shown = Watermarks(STREAMS), [], []
    for number, record in enumerate(records):
        if number in cuts:
            shown.append(dict(watermarks.show(CLOCKS)))
            text = watermarks.dump()
            watermarks = Watermarks(STREAMS)
            watermarks.load(text)
        after.append(watermarks.after(*record))
    return after, [*shown, dict(watermarks.show(CLOCKS))]


@given(RECORDS)
def test_the_watermark_of_a_partition_is_its_newest_timestamp_less_the_bound(records):
    seen = defaultdict(list)
    for (stream, partition, timestamp), watermark in zip(records, run(records)[0], strict=True):
        seen[stream, partition].append(timestamp)
        assert watermark == max(seen[stream, partition]) - STREAMS[stream].out_of_orderness


@given(RECORDS, st.sets(st.integers(0, 30)))
def test_micro_batches_change_no_watermark_and_clocks_never_go_back(records, cuts):
    whole, (end,) = run(records)
    after, shown = run(records, cuts)
    assert after == whole
    for clock in CLOCKS:
        times = [of[clock] for of in shown]
        assert times == sorted(times)
        assert times[-1] >= end[clock]


@given(RECORDS)
def test_no_record_that_comes_later_is_behind_a_clock_unless_its_partition_is_new(records):
    for number, (stream, partition, _) in enumerate(records):
        shown = run(records[:number])[1][-1]
        if partition in STREAMS[stream].partitions:
            assert run(records[: number + 1])[0][-1] >= shown[stream] >= shown["orders,views"]


def test_a_clock_shows_nothing_before_each_partition_had_a_record():
    assert run([("orders", 0, 50_000), ("views", 0, 50_000)])[1][-1] == {
        "orders": 0,
        "views": 49_500,
        "orders,views": 0,
    }
    assert run([("orders", 0, 50_000), ("orders", 1, 40_000), ("views", 0, 50_000)])[1][-1] == {
        "orders": 38_000,
        "views": 49_500,
        "orders,views": 38_000,
    }
    assert Watermarks({}).show([""]) == {"": 0}, "a view of tables alone has no time"


def test_a_partition_that_was_added_holds_up_no_clock_after_a_restart():
    before = Watermarks({"views": EventStream([0], 500)})
    before.after("views", 0, 50_000)
    before.show(["views"])
    after = Watermarks({"views": EventStream([0, 1], 500)})
    after.load(before.dump())
    after.after("views", 0, 60_000)
    assert after.show(["views"]) == {"views": 59_500}
