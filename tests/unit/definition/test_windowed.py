"""Which windows an event touches."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition.registry import VIEWS

VIEW = VIEWS["page_views_per_minute"]
MINUTES = st.integers(1, 90).map(lambda n: timedelta(minutes=n))


@given(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)), MINUTES, MINUTES)
def test_every_window_that_holds_an_event_is_found_and_no_window_that_does_not(event, size, slide):
    low, high = replace(VIEW, size=size, slide=slide).windows_of(event, event)
    assert (low - datetime(1970, 1, 1)) % slide == timedelta(0)
    assert low - slide + size <= event < low + size  # the window before has ended, this one has not
    assert high - slide <= event < high  # the last one has begun, the next one has not
