"""Rows of a sketch agree within the errors that they state, and no further; all other rows only if they are equal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.reconcile.tolerance import agree

APPROXIMATE = {"views": "views_error", "page": "rank_error"}
HIGHEST = 3


def row(**values: Any) -> str:
    return json.dumps({"window_end": "10:01", "page": "/", "views": 100, "views_error": 5, "rank_error": 0} | values)


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        (row(), True),
        (row(views=110), True),
        (row(views=111), False),
        (row(views=110, views_error=4), False),
        (row(window_end="10:02"), False),
        (row(page="/b"), False),
        (row(page="/b", rank_error=1), False),
        (None, False),
    ],
)
def test_rows_agree_within_the_sum_of_their_errors(other, agrees):
    assert agree(row(), other, APPROXIMATE) is agrees
    assert agree(other, row(), APPROXIMATE) is agrees


def test_text_may_differ_if_both_rows_say_so():
    assert agree(row(page="/a", rank_error=1), row(page="/b", rank_error=2), APPROXIMATE)


def test_a_row_may_be_missing_only_if_its_values_are_near_zero():
    assert agree(row(views=15, rank_error=1), None, APPROXIMATE)
    assert not agree(row(views=16, rank_error=1), None, APPROXIMATE)
    assert not agree(row(views=0, views_error=0), None, APPROXIMATE)


def test_decimals_are_compared_exactly_with_their_error():
    one, other = '{"mean":0.30,"mean_error":0.05}', '{"mean":0.40,"mean_error":0.05}'
    assert agree(one, other, {"mean": "mean_error"})
    assert not agree(one, other.replace("0.40", "0.41"), {"mean": "mean_error"})


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_view_without_approximate_columns_is_compared_exactly(one, other):
    assert agree(row(views=one), row(views=other)) is (one == other)
    exact = {"views_error": 0, "rank_error": 0}
    assert agree(row(views=one, **exact), row(views=other, **exact), APPROXIMATE) is (one == other)


@st.composite
def sketches(draw: Any) -> tuple[dict[str, int], int, list[dict[str, int]]]:
    """True counts, the stated error, and two frequent-items sketches: each counts too high by up to its own error."""
    truth = draw(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 200), min_size=1))
    stated = draw(st.integers(1, 20))
    estimates = []
    for _ in range(2):
        own = draw(st.integers(0, stated))
        counts = {item: count + draw(st.integers(0, own)) for item, count in truth.items()}
        # It gives the items that it has certainly seen more often than its error.
        estimates.append({item: count for item, count in counts.items() if count > 2 * own})
    return truth, stated, estimates


def ranks(counts: dict[str, int], error: int) -> list[str | None]:
    """What ``ranked`` makes of a sketch."""
    first = sorted(counts.items(), key=lambda of: (-of[1], of[0]))[: HIGHEST + 1]
    rows = []
    for page, views in first[:HIGHEST]:
        near = sum(abs(other - views) <= 2 * error for _, other in first) - 1 + (views <= 4 * error)
        rows.append(row(page=page, views=views, views_error=error, rank_error=near))
    return rows + [None] * (HIGHEST - len(rows))


@given(sketches())
def test_two_sketches_over_the_same_rows_agree_in_every_rank(drawn):
    _, error, (one, other) = drawn
    for left, right in zip(ranks(one, error), ranks(other, error), strict=True):
        assert agree(left, right, APPROXIMATE)


@given(sketches())
def test_a_wrong_page_at_a_rank_that_is_certain_is_found(drawn):
    _, error, (one, other) = drawn
    for left, right in zip(ranks(one, error), ranks(other, error), strict=True):
        if left and right and not json.loads(left)["rank_error"]:
            assert not agree(left, json.dumps(json.loads(right) | {"page": "another"}), APPROXIMATE)
