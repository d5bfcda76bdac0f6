"""Days are built in spans: near days together, the newest first."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lockstep.marts.touched import MOST_DAYS, MOST_DAYS_BETWEEN, days_of, spans, whole


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def test_days_with_a_weekend_between_them_are_one_span_and_the_newest_comes_first() -> None:
    days = [date(2026, 11, day) for day in (3, 16, 2, 17, 13, 9)]
    assert spans(days) == [(at(13), at(18)), (at(9), at(10)), (at(2), at(4))]


@given(st.sets(st.dates(date(2024, 1, 1), date(2024, 6, 30))))
def test_every_day_is_in_one_span_and_no_span_is_too_long(days: set[date]) -> None:
    found = spans(days)
    covered = [day for span in found for day in days_of(span)]
    assert len(covered) == len({*covered})
    assert days <= {*covered}
    assert all(end - start <= timedelta(days=MOST_DAYS) for start, end in found)
    assert found == sorted(found, reverse=True)


@given(st.sets(st.dates(date(2024, 1, 1), date(2024, 6, 30))))
def test_a_span_begins_and_ends_with_days_that_wait_and_has_a_weekend_between_them_at_most(days: set[date]) -> None:
    for span in spans(days):
        within = sorted(days & days_of(span))
        assert (within[0], within[-1]) == (min(days_of(span)), max(days_of(span)))
        gaps = [(later - day).days - 1 for day, later in pairwise(within)]
        assert max(gaps, default=0) <= MOST_DAYS_BETWEEN


def test_the_days_of_a_first_build_are_one_span_however_many_they_are() -> None:
    assert whole({date(2026, 11, 3), date(2024, 2, 29), date(2026, 1, 1)}) == [
        (datetime(2024, 2, 29, tzinfo=UTC), at(4))
    ]
    assert whole(set()) == []
