"""When a window is closed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.support.commits import entry, ranges

from lockstep.contracts import CONTRACTS
from lockstep.ledger.entries import Entry
from lockstep.ledger.event_time import newest_at, watermark

SECOND = 1000
CONTRACT = replace(CONTRACTS["page_views"], max_out_of_orderness=timedelta(seconds=5))


def an_entry(ends: dict[int, int], times: dict[int, int]) -> Entry:
    return entry(ranges({p: (0, end) for p, end in ends.items()}), newest=times)


NEWEST_FIRST = [
    an_entry({0: 30, 1: 20, 2: 0}, {0: 90 * SECOND, 1: 70 * SECOND}),
    an_entry({0: 20, 1: 20, 2: 0}, {0: 60 * SECOND, 1: 70 * SECOND}),
    an_entry({0: 10, 1: 10, 2: 0}, {0: 30 * SECOND, 1: 40 * SECOND}),
]


def test_the_slowest_partition_decides():
    assert watermark(CONTRACT, {0: 90 * SECOND, 1: 70 * SECOND}, [0, 1]) == datetime.fromtimestamp(65, UTC)


def test_an_entry_counts_only_when_the_position_covers_all_of_it():
    assert newest_at(NEWEST_FIRST, {0: 30, 1: 20}) == {0: 90 * SECOND, 1: 70 * SECOND}
    assert newest_at(NEWEST_FIRST, {0: 29, 1: 20}) == {0: 60 * SECOND, 1: 70 * SECOND}
    assert newest_at(NEWEST_FIRST, {0: 30, 1: 19}) == {0: 90 * SECOND, 1: 40 * SECOND}


def test_no_more_of_a_ledger_is_read_than_needed_although_partitions_are_empty_or_unknown():
    newest_first = iter([*NEWEST_FIRST, *NEWEST_FIRST])
    # Partition 2 has never had a record, and silver does not know partition 3 yet.
    assert newest_at(newest_first, {0: 20, 1: 20, 2: 0, 3: 7}) == {0: 60 * SECOND, 1: 70 * SECOND}
    assert len([*newest_first]) == 4


def test_nothing_is_closed_while_a_partition_has_shown_nothing():
    assert newest_at(NEWEST_FIRST, {0: 30, 1: 5}) == {0: 90 * SECOND}
    assert watermark(CONTRACT, {0: 90 * SECOND}, [0, 1]) is None
    assert watermark(CONTRACT, {}, []) is None
