"""The message of a shut gate, and the values that it never shows."""

from typing import Any

from lockstep.quality.checks import check, sentence
from lockstep.suite_files import Severity

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


def test_a_check_has_the_numbers_of_great_expectations() -> None:
    found = check(IN_SET, FAILED | {"success": False}, frozenset(), rows=9)
    assert (found.columns, found.severity, found.success) == (("kind",), Severity.FAIL, False)
    assert (found.unexpected, found.elements, found.observed) == (4, 9, None)
    assert "4 of 9" in found.reason
    assert found.shuts


def test_of_a_check_about_rows_that_passed_in_spark_it_is_known_that_no_row_broke_it() -> None:
    found = check(IN_SET, {"success": True, "result": {}}, frozenset(), rows=9)
    assert (found.unexpected, found.elements, found.reason) == (0, 9, "")


def test_an_observed_value_is_kept_unless_it_is_personal() -> None:
    expectation = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "age", "max_value": 130}}
    result = {"success": True, "result": {"observed_value": 97}}
    assert check(expectation, result, frozenset(), 9).observed == "97"
    assert check(expectation, result, frozenset(), 9).unexpected is None
    assert check(expectation, result, frozenset({"age"}), 9).observed is None


def test_a_warning_does_not_shut_the_gate() -> None:
    found = check(IN_SET | {"severity": "warning"}, FAILED | {"success": False}, frozenset(), rows=9)
    assert (found.severity, found.success, found.shuts) == (Severity.WARN, False, False)


def test_rows_that_should_be_aside_say_why_they_are_not() -> None:
    found = check(IN_SET | {"meta": {"quarantine": True}}, FAILED | {"success": False}, frozenset(), rows=9)
    assert found.shuts
    assert found.reason.endswith("they came before this rule, and a replay of silver puts them aside")
