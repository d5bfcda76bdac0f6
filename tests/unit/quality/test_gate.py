"""What a shut gate says, and what it keeps to itself."""

from typing import Any

from tests.unit.quality.conftest import Commit, ranges

from lockstep.quality.gate import is_open, sentence
from lockstep.settings import Settings

IN_SET = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "kind", "value_set": ["sale"]}}
FAILED: dict[str, Any] = {
    "result": {"element_count": 9, "unexpected_count": 4, "partial_unexpected_list": ["x", "y", "z"]}
}


def test_a_failure_names_the_expectation_the_count_and_a_sample() -> None:
    assert sentence(IN_SET, FAILED, frozenset()) == (
        "expect_column_values_to_be_in_set(column='kind', value_set=['sale']): 4 of 9 rows do not hold, "
        "such as ['x', 'y', 'z']"
    )


def test_values_of_a_personal_column_are_never_shown() -> None:
    said = sentence(IN_SET, FAILED, frozenset({"kind"}))
    assert "4 of 9" in said
    assert "'x'" not in said


def test_values_of_a_personal_column_in_a_list_or_a_pair_are_never_shown() -> None:
    listed = {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["user_id", "email"]}}
    paired = {
        "type": "expect_column_pair_values_a_to_be_greater_than_b",
        "kwargs": {"column_A": "email", "column_B": "name"},
    }
    for expectation in (listed, paired):
        assert "'x'" not in sentence(expectation, FAILED, frozenset({"email"}))


def test_an_observed_value_of_a_personal_column_is_never_shown() -> None:
    expectation = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "email", "max_value": 1}}
    result = {"result": {"observed_value": "ann@example.com"}}
    assert "ann" in sentence(expectation, result, frozenset())
    assert "ann" not in sentence(expectation, result, frozenset({"email"}))


def test_a_check_that_could_not_be_made_says_why() -> None:
    info = {"('column_values.nonnull', 'abc')": {"raised_exception": True, "exception_message": "no column kind\nmore"}}
    assert sentence(IN_SET, {"result": {}, "exception_info": info}, frozenset()).endswith(
        "could not be checked: no column kind"
    )


def test_a_gate_is_open_only_when_every_row_has_passed(settings: Settings, commit: Commit) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    assert not is_open(settings, "silver.page_views")
    commit("ops.quality", 1, {"seq": 1, "newest": {}, "positions": {"silver.page_views": 1}})
    assert is_open(settings, "silver.page_views")
    commit("silver.page_views", 2, ranges((0, 10, 12)), rows=2)
    assert not is_open(settings, "silver.page_views")
