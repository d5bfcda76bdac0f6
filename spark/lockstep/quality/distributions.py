"""How the values of a column are spread, against its own history: the shares of each value in the rows that passed before.

Great Expectations compares shares by ``expect_column_kl_divergence_to_be_less_than``. If its ``meta`` says ``"history": true``,
it gets the history in the place of ``partition_object``. The record of ``ops.quality`` has the counts. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep.suite_files import text_of

# Counts of a column, as JSON keeps them: pairs of a value and how often it came.
Counts = Sequence[Sequence[Any]]
_TYPE, _META = "expect_column_kl_divergence_to_be_less_than", "history"
# Of three values that were as frequent, one is 55 % of the rows now.
_USUAL_THRESHOLD = 0.1
# Fewer rows have other shares by chance: with three values, and a threshold of 0.1, one slice of a hundred rows in ten thousand.
_LEAST_ROWS = 100
# The history is of about this many rows: what was usual long ago need not be usual now.
_REMEMBERED_ROWS = 100_000
# A column of more values has no shares that say something.
_MOST_VALUES = 50
# The share that history gives to values that it does not know, so that a new one is a difference and not an infinite one.
_UNKNOWN = 0.001


def follows_history(expectation: Mapping[str, Any]) -> bool:
    """Whether the expectation compares with history."""
    return bool((expectation.get("meta") or {}).get(_META))


def problem(expectation: Mapping[str, Any], pii: frozenset[str]) -> str:
    """Why the expectation cannot follow history; empty: it can."""
    if expectation["type"] != _TYPE:
        return f"only {_TYPE} takes its partition from history: leave out meta.{_META}"
    if "threshold" not in expectation["kwargs"] or "partition_object" in expectation["kwargs"]:
        return "give a threshold and no partition_object: history is the partition"
    if expectation["kwargs"]["column"] in pii:
        return "of a personal column no values are kept, not even how many there are of each"
    return ""


def against_history(column: str) -> dict[str, Any]:
    """An expectation that warns when the shares of the values differ from history."""
    kwargs = {"column": column, "threshold": _USUAL_THRESHOLD}
    return {"type": _TYPE, "kwargs": kwargs, "severity": "warning", "meta": {_META: True}}


def name_of(expectation: Mapping[str, Any]) -> str:
    """What the history of an expectation is known by."""
    return text_of(expectation["type"], expectation["kwargs"])


def filled(expectation: Mapping[str, Any], history: Counts, rows: int) -> dict[str, Any]:
    """The expectation with the shares of its history. Few rows, or few before them, are only counted: it is met."""
    if not follows_history(expectation):
        return dict(expectation)
    known = sum(count for _, count in history)
    kwargs = {**expectation["kwargs"], "bucketize_data": False}
    if min(rows, known) < _LEAST_ROWS:
        return {**expectation, "kwargs": {**kwargs, "threshold": None}}
    partition = {"values": [v for v, _ in history], "weights": [count / known for _, count in history]}
    return {**expectation, "kwargs": {**kwargs, "partition_object": partition, "tail_weight_holdout": _UNKNOWN}}


def counted(result: Mapping[str, Any], rows: int) -> Counts:
    """The counts that Great Expectations has found of each value.

    Args:
        result: of an expectation that follows history.
        rows: how many rows it looked at.
    """
    found = (result.get("result") or {}).get("details", {}).get("observed_partition", {})
    pairs = zip(found.get("values", ()), found.get("weights", ()), strict=True)
    return [[value, round(weight * rows)] for value, weight in pairs if weight]


def with_slice(history: Counts, new: Counts) -> Counts:
    """The history with the counts of a slice: old rows are forgotten little by little."""
    total: dict[Any, float] = dict(map(tuple, history))
    for value, count in new:
        total[value] = total.get(value, 0) + count
    scale = min(1, _REMEMBERED_ROWS / (sum(total.values()) or 1))
    most = sorted(total.items(), key=lambda of: -of[1])[:_MOST_VALUES]
    return [[value, round(count * scale, 1)] for value, count in most if round(count * scale, 1)]


def difference(result: Mapping[str, Any]) -> str:
    """The value whose share differs most from history, in words; empty where no shares were compared."""
    details = (result.get("result") or {}).get("details", {})
    now, before = (details.get(name, {}) for name in ("observed_partition", "expected_partition"))
    shares = _pairs(now.get("values", ()), now.get("weights", ()), before.get("weights", ()))
    if not shares:
        return ""
    value, share, usual = max(shares, key=lambda of: abs(of[1] - of[2]))
    return f"{value!r} is {share:.0%} of the rows, and was {usual:.0%} before"


def _pairs(values: Iterable[Any], now: Iterable[float], before: Iterable[float]) -> list[tuple[Any, float, float]]:
    return list(zip(values, now, before, strict=True))
