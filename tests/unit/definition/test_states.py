"""States survive as JSON."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition import states

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.datetimes(timezones=st.just(UTC))
    # Numbers come back equal; NaN never is.
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
)


@given(VALUES)
def test_a_state_comes_back_as_it_was(state):
    assert states.loads(states.dumps(state)) == state


def test_a_time_of_another_zone_comes_back_in_utc():
    local = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert states.loads(states.dumps(local)).isoformat() == "2026-01-01T10:00:00+00:00"
    assert states.instant("2026-01-01T12:00:00+02:00").isoformat() == "2026-01-01T10:00:00+00:00"


def test_numbers_with_a_fraction_are_exact():
    assert states.loads('{"amount": 1.10}') == {"amount": Decimal("1.10")}


def test_what_json_cannot_hold_is_refused_with_what_it_can():
    with pytest.raises(
        TypeError, match=r"a state cannot hold .* use dicts, lists, strings, numbers, datetime and Decimal"
    ):
        states.dumps({"seen": {1, 2}})
