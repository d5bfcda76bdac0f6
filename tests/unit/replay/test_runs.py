"""The arithmetic on the runs of a table."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.commits import entry

from lockstep.ledger.ranges import Range, to_where
from lockstep.replay.runs import enclosing, hull, overlap

offsets = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)


@given(st.dictionaries(st.integers(0, 2), offsets), st.dictionaries(st.integers(0, 2), offsets))
def test_ranges_overlap_when_an_offset_is_in_both(one, other):
    left, right = (tuple(Range("t", "i", p, *span) for p, span in spans.items()) for spans in (one, other))
    inside = [{(p, n) for p, span in spans.items() for n in range(*span)} for spans in (one, other)]
    assert overlap(left, right) == bool(inside[0] & inside[1])


def test_the_hull_has_every_partition_of_its_runs():
    runs = [
        entry([Range("t", "i", 0, 5, 9), Range("t", "i", 1, 3, 3), Range("other", "o", 0, 50, 60)]),
        entry([Range("t", "i", 0, 0, 5)]),
    ]
    whole = hull(runs, "t")
    assert [(r.partition, r.start, r.end) for r in whole] == [(0, 0, 9), (1, 3, 3)]
    assert to_where(whole) == "((partition = 0 AND offset >= 0 AND offset < 9))"


def test_several_ranges_of_a_partition_are_enclosed_by_one():
    ranges = [Range("t", "i", 0, 5, 9), Range("t", "i", 1, 3, 4), Range("t", "i", 0, 1, 2)]
    assert enclosing(ranges) == [Range("t", "i", 0, 1, 9), Range("t", "i", 1, 3, 4)]
