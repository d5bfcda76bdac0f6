"""The windows in which a windowed view looks for an event. What the views compute is in tests/shop/integration/views."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles.windows import windows

from lockstep.definition.registry import VIEWS
from lockstep.definition.view import Output

WINDOWED = [view for view in VIEWS.values() if view.output is Output.WINDOWS]


@pytest.mark.parametrize("view", WINDOWED, ids=lambda v: v.name)
@given(instant=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))
def test_a_view_looks_for_an_event_in_all_the_windows_that_contain_it(view, instant):
    low, high = view.windows_of(instant, instant)
    assert all(low <= start < high for start in windows(instant, view.size, view.slide))
