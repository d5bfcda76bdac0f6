"""Which types of a column can become which: no value of a row changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition.column_changes import column_changes, widens

INTEGERS = ["TINYINT", "SMALLINT", "INT", "BIGINT"]
decimals = st.integers(1, 38).flatmap(lambda precision: st.tuples(st.just(precision), st.integers(0, precision)))
kinds = st.sampled_from([*INTEGERS, "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "BOOLEAN"]) | decimals.map(
    lambda of: f"DECIMAL({of[0]},{of[1]})"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((old, new) for n, old in enumerate(INTEGERS) for new in INTEGERS[n + 1 :]),
        ("FLOAT", "DOUBLE"),
        ("DECIMAL(10,2)", "DECIMAL(18, 2)"),
        ("integer", "bigint"),
        ("integer", "long"),
    ],
)
def test_a_type_that_holds_the_same_values_and_more_is_wider(old, new):
    assert widens(old, new)
    assert not widens(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DECIMAL(10,2)", "DECIMAL(12,4)"),
        ("DECIMAL(10,2)", "DECIMAL(12,1)"),
        ("INT", "DOUBLE"),
        ("BIGINT", "DECIMAL(20,0)"),
        ("DATE", "TIMESTAMP"),
        ("STRING", "BIGINT"),
        ("INT", "STRING"),
        ("ARRAY<INT>", "ARRAY<BIGINT>"),
    ],
)
def test_a_type_in_which_values_would_look_otherwise_is_not(old, new):
    assert not widens(old, new)


@given(kinds, kinds, kinds)
def test_wider_is_an_order(one, two, three):
    assert not widens(one, one)
    assert not (widens(one, two) and widens(two, one))
    assert not (widens(one, two) and widens(two, three)) or widens(one, three)


def test_a_table_gets_new_columns_and_wider_types_and_all_else_is_refused():
    there = {"id": "string", "n": "integer", "gone": "date", "at": "timestamp", "tags": "array"}
    wanted = {"id": "STRING", "n": "BIGINT", "at": "DATE", "tags": "ARRAY<STRING>", "note": "STRING"}
    changes = column_changes(there, wanted)
    assert (changes.new, changes.wider) == ({"note": "STRING"}, {"n": "BIGINT"})
    assert changes.refused == (
        "the column gone is not declared any more",
        "the column at is of type timestamp, and declared as DATE",
    )


@pytest.mark.parametrize(
    ("there", "declared"),
    [
        ("long", "BIGINT"),
        ("decimal(10,2)", "DECIMAL(10, 2)"),
        ("decimal(12,0)", "NUMERIC(12)"),
        ("decimal(10,0)", "DEC"),
        ("struct", "STRUCT<a: INT>"),
    ],
)
def test_a_type_has_more_than_one_name(there, declared):
    assert not column_changes({"n": there}, {"n": declared})
