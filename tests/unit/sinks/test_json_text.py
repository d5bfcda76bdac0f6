"""Rows as JSON keep every digit, and are JSON for every reader."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.sinks.json_text import json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.250"), '"1.250"'),
        (datetime(2026, 11, 20, 10, 0, 0, 1, UTC), '"2026-11-20T10:00:00.000001Z"'),
        (datetime(2026, 11, 20, 10, tzinfo=timezone(timedelta(hours=2))), '"2026-11-20T08:00:00.000000Z"'),
        (date(2026, 11, 20), '"2026-11-20"'),
        (b"\x00\xff", '"AP8="'),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (["a", None], '["a",null]'),
        ({"inner": Decimal(1)}, '{"inner":"1"}'),
        ("ü", '"ü"'),
    ],
)
def test_a_value_is_written_as(value: object, text: str) -> None:
    assert json_text({"a": value}) == f'{{"a":{text}}}'


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()))
def test_every_row_is_json_that_a_strict_reader_takes(row: dict[str, object]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(json_text(row), parse_constant=refuse).keys() == row.keys()
