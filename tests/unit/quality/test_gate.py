"""The message of a shut gate, and the values that it never shows."""

from typing import Any

from lockstep.quality.gate import sentence

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
    message = sentence(IN_SET, FAILED, frozenset({"kind"}))
    assert "4 of 9" in message
    assert "'x'" not in message


def test_values_of_a_personal_column_in_a_list_or_a_pair_are_never_shown() -> None:
    in_a_list = {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["user_id", "email"]}}
    in_a_pair = {
        "type": "expect_column_pair_values_a_to_be_greater_than_b",
        "kwargs": {"column_A": "email", "column_B": "name"},
    }
    for expectation in (in_a_list, in_a_pair):
        assert "'x'" not in sentence(expectation, FAILED, frozenset({"email"}))


def test_an_observed_value_of_a_personal_column_is_never_shown() -> None:
    expectation = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "email", "max_value": 1}}
    result = {"result": {"observed_value": "ann@example.com"}}
    assert "ann" in sentence(expectation, result, frozenset())
    assert "ann" not in sentence(expectation, result, frozenset({"email"}))


def test_the_message_of_a_check_that_raised_has_its_error() -> None:
    info = {"('column_values.nonnull', 'abc')": {"raised_exception": True, "exception_message": "no column kind\nmore"}}
    assert sentence(IN_SET, {"result": {}, "exception_info": info}, frozenset()).endswith(
        "could not be checked: no column kind"
    )
