"""Days are built in spans: consecutive days together, the newest first."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lockstep.marts.touched import MOST_DAYS, days_of, spans


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def test_consecutive_days_are_one_span_and_the_newest_comes_first() -> None:
    days = [date(2026, 11, day) for day in (3, 9, 2, 8, 5)]
    assert spans(days) == [(at(8), at(10)), (at(5), at(6)), (at(2), at(4))]


@given(st.sets(st.dates(date(2024, 1, 1), date(2024, 6, 30))))
def test_every_day_is_in_one_span_and_no_span_is_too_long(days: set[date]) -> None:
    found = spans(days)
    assert sorted(day for span in found for day in days_of(span)) == sorted(days)
    assert all(end - start <= timedelta(days=MOST_DAYS) for start, end in found)
    assert found == sorted(found, reverse=True)
