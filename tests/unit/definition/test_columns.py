"""Which types of a column can become which: no value of a row changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition.columns import widens

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
