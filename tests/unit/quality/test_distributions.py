"""The shares of a column's values against its own history, as Great Expectations compares them. Without Spark."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import CHECKOUT

from lockstep.quality import suites
from lockstep.quality.checks import Check, check
from lockstep.quality.distributions import Counts, against_history, counted, filled, name_of, problem, with_slice
from lockstep.quality.engine import batch_of, run
from lockstep.settings import Settings

DEVICE = against_history("device")
USUAL = {"desktop": 500, "mobile": 300, "tablet": 200}


def gate(history: Counts, slice_: Mapping[str | None, int]) -> tuple[Check, Counts]:
    """What a gate says of a slice with so many rows of each value, and the counts that it takes from it."""
    rows = pd.DataFrame({"device": [value for value, count in slice_.items() for _ in range(count)]})
    [result] = run(batch_of("t", rows), [filled(DEVICE, history, len(rows))], {"result_format": "BASIC"})
    return check(DEVICE, result, frozenset(), len(rows)), counted(DEVICE, result, len(rows))


HISTORY: Counts = [[*pair] for pair in USUAL.items()]


def test_the_first_rows_are_counted_and_compared_with_nothing() -> None:
    found, counts = gate([], USUAL)
    assert (found.success, dict(map(tuple, counts))) == (True, USUAL)


def test_the_same_shares_in_another_number_of_rows_are_no_shift() -> None:
    found, _ = gate(HISTORY, {"desktop": 52, "mobile": 28, "tablet": 20})
    assert found.success
    assert found.expectation == "expect_column_kl_divergence_to_be_less_than(column='device', threshold=0.1)"
    assert found.observed is not None
    assert float(found.observed) < 0.01


@pytest.mark.parametrize(
    ("slice_", "named"),
    [
        ({"desktop": 10, "mobile": 80, "tablet": 10}, "'mobile' is 80% of the rows, and was 30% before"),
        ({"desktop": 50, "television": 50}, "'television' is 50% of the rows, and was 0% before"),
        ({"desktop": 100}, "'desktop' is 100% of the rows, and was 50% before"),
    ],
)
def test_a_shift_is_red_and_the_value_that_shifted_most_is_named(slice_: Mapping[str | None, int], named: str) -> None:
    found, _ = gate(HISTORY, slice_)
    assert not found.success
    assert not found.shuts, "it warns"
    assert named in found.reason


def test_few_rows_are_not_compared_because_they_differ_by_chance() -> None:
    found, counts = gate(HISTORY, {"tablet": 99})
    assert (found.success, counts) == (True, [["tablet", 99]])
    found, _ = gate([["tablet", 99]], {"desktop": 100})
    assert found.success


def test_nulls_are_no_value() -> None:
    assert gate(HISTORY, {"desktop": 50, "mobile": 30, "tablet": 20, None: 50})[0].success


def test_what_has_become_usual_is_no_shift_any_more() -> None:
    history, shifted = HISTORY, [["television", 400]]
    for _ in range(20):
        history = with_slice(name_of(DEVICE), history, shifted)
    assert gate(history, {"television": 90, "desktop": 10})[0].success


@given(st.lists(st.dictionaries(st.text(max_size=2), st.integers(1, 10**6)), max_size=6))
def test_a_history_has_a_bound_and_no_value_twice(slices: list[dict[str, int]]) -> None:
    history: Counts = []
    for slice_ in slices:
        history = with_slice(name_of(DEVICE), history, [[*pair] for pair in slice_.items()])
    values: list[Any] = [value for value, _ in history]
    assert len(values) == len({*values}) <= 50
    assert sum(count for _, count in history) <= 100_010


MEAN = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "ms"}, "meta": {"history": 0.5}}


def mean_of(history: Counts, *values: float | None) -> tuple[Check, Counts]:
    """What a gate says of the mean of a slice, and the history after it."""
    rows = pd.DataFrame({"ms": values})
    [result] = run(batch_of("t", rows), [filled(MEAN, history, len(rows))], {"result_format": "BASIC"})
    counts = counted(MEAN, result, len(rows))
    return check(MEAN, result, frozenset(), len(rows)), with_slice(name_of(MEAN), history, counts)


def test_a_mean_may_differ_by_its_part_of_the_mean_before() -> None:
    first, history = mean_of([], *[100.0] * 150)
    usual, history = mean_of(history, *[80.0, 160.0] * 50)
    assert (first.success, usual.success) == (True, True)
    slow, after = mean_of(history, *[200.0] * 100)
    assert (slow.success, slow.expectation) == (False, "expect_column_mean_to_be_between(column='ms')")
    assert slow.reason.endswith("the mean is 200, and was 108 before")
    assert mean_of(history, *[2.0] * 100)[0].reason.endswith("the mean is 2, and was 108 before")
    assert mean_of(history, *[200.0] * 99)[0].success, "too few rows"
    assert dict(map(tuple, after)) == {"rows": 350, "sum": 150 * 100 + 100 * 120 + 100 * 200}


def test_a_mean_of_no_values_changes_no_history() -> None:
    history: Counts = [["rows", 300], ["sum", 300.0]]
    assert mean_of(history, *[None] * 100)[1] == history


def test_the_history_of_a_mean_is_of_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(
        map(tuple, with_slice(name_of(MEAN), [["rows", 100_000], ["sum", 0.0]], [["rows", 100_000], ["sum", 1e6]]))
    )
    assert found == {"rows": 100_000, "sum": 500_000}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"type": "expect_column_median_to_be_between"}, "only expect_column_kl_divergence"),
        ({"kwargs": {"column": "device"}}, "write a column and a threshold"),
        ({"kwargs": {"column": "device", "threshold": 0.1, "partition_object": {}}}, "write a column and a threshold"),
        ({"meta": {"history": 0.5}}, "write a column and a threshold"),
        (MEAN | {"meta": {"history": True}}, "name the column alone"),
        (MEAN | {"kwargs": {"column": "ms", "min_value": 0}}, "name the column alone"),
        ({"kwargs": {"column": "email", "threshold": 0.1}}, "personal column"),
    ],
)
def test_what_cannot_follow_history_is_refused(wrong: Mapping[str, Any], why: str) -> None:
    assert why in problem({**DEVICE, **wrong}, frozenset({"email"}))


def test_page_views_and_orders_are_held_against_their_history() -> None:
    ours = Settings(project=CHECKOUT)
    followed = {
        table: [
            one["kwargs"]["column"]
            for one in suites.load(ours, table)["expectations"]
            if "history" in (one.get("meta") or {})
        ]
        for table in ("silver.page_views", "silver.orders", "silver.requests")
    }
    assert followed == {
        "silver.page_views": ["device"],
        "silver.orders": ["kind"],
        "silver.requests": ["response_ms"],
    }
