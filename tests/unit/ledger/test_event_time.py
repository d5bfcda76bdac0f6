"""When a window is closed."""

from datetime import UTC, datetime

from tests.support.commits import entry, ranges

from lockstep.ledger.entries import Entry
from lockstep.ledger.event_time import reached

SECOND = 1000


def an_entry(ends: dict[int, int], times: dict[int, int]) -> Entry:
    return entry(ranges({p: (0, end) for p, end in ends.items()}), reached=times)


NEWEST_FIRST = [
    an_entry({0: 30, 1: 20}, {0: 90 * SECOND}),
    an_entry({0: 20, 1: 20}, {0: 60 * SECOND, 1: 70 * SECOND}),
    an_entry({0: 10, 1: 10}, {0: 30 * SECOND, 1: 40 * SECOND}),
]


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_the_slowest_partition_decides():
    assert reached(NEWEST_FIRST, {0: 30, 1: 20}) == at(70)


def test_an_entry_counts_only_when_the_position_covers_all_of_it():
    assert reached(NEWEST_FIRST, {0: 29, 1: 20}) == at(60)
    assert reached(NEWEST_FIRST, {0: 30, 1: 19}) == at(40)


def test_nothing_is_closed_while_a_partition_has_shown_nothing():
    assert reached(NEWEST_FIRST, {0: 30, 1: 5}) is None
    assert reached(NEWEST_FIRST, {}) is None
