"""A rule puts rows aside by the value of one column. What cannot be decided so is refused, with the way out."""

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support import rules as oracle

from lockstep.contracts import Contract
from lockstep.contracts.rules import KINDS, problems, rule_of

CONTRACT = Contract(
    name="parcels",
    topic="parcels",
    kind="events",
    columns={
        "id": "STRING",
        "weight": "DOUBLE",
        "price": "DECIMAL(12,2)",
        "count": "INT",
        "fragile": "BOOLEAN",
        "at": "TIMESTAMP",
        "name": "STRING",
        "tags": "ARRAY<STRING>",
    },
    key=("id",),
    unique_id=("id",),
    event_time="at",
    pii=("name",),
)
VALUES = "expect_column_values_to_"


def expectation(kind: str, column: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": {"column": column, **kwargs}, "meta": {"quarantine": True}}


@pytest.mark.parametrize(
    "good",
    [
        expectation(f"{VALUES}not_be_null", "id"),
        expectation(f"{VALUES}not_be_null", "name"),
        expectation(f"{VALUES}be_between", "weight", min_value=0),
        expectation(f"{VALUES}be_between", "price", max_value=0.5, strict_max=True),
        expectation(f"{VALUES}be_between", "at", min_value="2020-01-01T00:00:00+00:00"),
        expectation(f"{VALUES}be_in_set", "fragile", value_set=[True]),
        expectation(f"{VALUES}match_regex", "id", regex="^p[0-9]+$"),
        expectation("expect_column_value_lengths_to_equal", "id", value=7),
    ],
)
def test_an_expectation_of_one_value_can_put_rows_aside(good: dict[str, Any]) -> None:
    assert problems(good, CONTRACT) == []
    assert rule_of(good).column == good["kwargs"]["column"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (
            expectation(f"{VALUES}be_unique", "id"),
            "not about the value of one column in one row.*leave out meta.quarantine",
        ),
        (
            {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}},
            "not about the value of one column",
        ),
        (expectation(f"{VALUES}not_be_null", "ids"), "parcels has no column 'ids' in its records: name one of id, "),
        (expectation(f"{VALUES}match_regex", "name", regex="@"), "name is PII: .* only .*not_be_null can be asked"),
        (expectation(f"{VALUES}not_be_null", "id", mostly=0.9), "a rule for single rows has no mostly: leave it out"),
        (expectation(f"{VALUES}be_between", "weight", min_value=2, max_value=1), "min_value 2 is above max_value 1"),
        (expectation(f"{VALUES}be_between", "weight"), "it has no limit: set min_value or max_value"),
        (
            expectation(f"{VALUES}be_between", "weight", min_value="0"),
            "min_value is '0': write a value of the type DOUBLE",
        ),
        (expectation(f"{VALUES}be_between", "at", min_value="soon"), "min_value is 'soon'"),
        (expectation(f"{VALUES}be_between", "count", max_value=2**63), "max_value is 9223372036854775808"),
        (expectation(f"{VALUES}be_between", "fragile", min_value=0), "values of the type BOOLEAN have no order"),
        (expectation(f"{VALUES}be_in_set", "count", value_set=[1, True]), "value_set has True"),
        (expectation(f"{VALUES}be_in_set", "count", value_set=[]), "it has no values"),
        (expectation(f"{VALUES}be_in_set", "tags", value_set=["a"]), "value_set has 'a'"),
        (expectation(f"{VALUES}match_regex", "count", regex="1"), "it is about texts, and the column is INT"),
        (expectation(f"{VALUES}match_regex", "id", regex="("), "which is no regular expression"),
        (expectation("expect_column_value_lengths_to_equal", "id", value=1.5), "value is 1.5: write a whole number"),
    ],
)
def test_what_no_single_row_can_decide_is_refused_with_the_way_out(bad: dict[str, Any], why: str) -> None:
    found = problems(bad, CONTRACT)
    assert len(found) == 1
    assert re.search(why, found[0]), found[0]


def test_a_rule_is_the_same_however_its_arguments_are_ordered_and_tells_the_expectation() -> None:
    one = rule_of(expectation(f"{VALUES}be_between", "weight", max_value=9, min_value=0))
    other = rule_of(expectation(f"{VALUES}be_between", "weight", min_value=0, max_value=9, strict_min=None))
    assert repr(one) == repr(other)
    assert str(one) == "expect_column_values_to_be_between(column='weight', max_value=9, min_value=0)"
    in_set = rule_of(expectation(f"{VALUES}be_in_set", "id", value_set=["a"]))
    assert str(in_set) == "expect_column_values_to_be_in_set(column='id', value_set=['a'])"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(KINDS),
    st.sampled_from(list(CONTRACT.columns)),
    st.dictionaries(
        st.sampled_from(["min_value", "max_value", "strict_min", "value_set", "regex", "value", "mostly"]), json_values
    ),
)
def test_whatever_a_file_says_is_a_rule_or_refused(kind: str, column: str, kwargs: dict[str, Any]) -> None:
    one = expectation(kind, column, **kwargs)
    if not problems(one, CONTRACT):
        assert rule_of(one).kind == kind


numbers = st.integers(-9, 9) | st.floats(-9, 9)
words = st.text("aB1é ", max_size=4)
CASES = st.one_of(
    st.tuples(
        st.just(f"{VALUES}be_between"),
        st.fixed_dictionaries({"min_value": numbers}, optional={"max_value": numbers, "strict_min": st.booleans()}),
        st.lists(st.none() | numbers.map(float), min_size=1),
    ),
    st.tuples(
        st.sampled_from([f"{VALUES}be_in_set", f"{VALUES}not_be_in_set"]),
        st.fixed_dictionaries({"value_set": st.lists(words, min_size=1)}),
        st.lists(st.none() | words, min_size=1),
    ),
    st.tuples(
        st.sampled_from([f"{VALUES}match_regex", f"{VALUES}not_match_regex"]),
        st.fixed_dictionaries({"regex": st.sampled_from(["^a", "B$", "1", "é", "^$", "[^ ]"])}),
        st.lists(st.none() | words, min_size=1),
    ),
    st.tuples(
        st.just("expect_column_value_lengths_to_be_between"),
        st.fixed_dictionaries({"min_value": st.integers(0, 4)}, optional={"strict_min": st.booleans()}),
        st.lists(st.none() | words, min_size=1),
    ),
    st.tuples(st.just(f"{VALUES}not_be_null"), st.just({}), st.lists(st.none() | words, min_size=1)),
)


@settings(max_examples=60)
@given(CASES)
def test_great_expectations_counts_the_rows_that_do_not_hold_as_the_oracle_does(
    case: tuple[str, dict[str, Any], list[Any]],
) -> None:
    import great_expectations as gx

    from lockstep.quality.engine import batch_of, run

    assert gx
    kind, kwargs, values = case
    column = "weight" if kind == f"{VALUES}be_between" else "id"
    assume(not problems(expectation(kind, column, **kwargs), CONTRACT))
    rows = pd.DataFrame({"value": pd.Series(values, dtype=object)})
    if all(value is None or isinstance(value, float) for value in values):
        rows = rows.astype({"value": "float64"})
    one = {"type": kind, "kwargs": {"column": "value", **kwargs}}
    [result] = run(batch_of("rows", rows), [one], {"result_format": "BASIC"})
    wrong = [value for value in values if not oracle.holds(kind, kwargs, value)]
    assert result["result"]["unexpected_count"] == len(wrong), (case, wrong)
