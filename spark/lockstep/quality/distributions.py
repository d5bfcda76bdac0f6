"""How the values of a column are spread, against its own history: their shares, or their mean, in the rows that passed before.

Great Expectations compares shares by ``expect_column_kl_divergence_to_be_less_than``, and a mean by
``expect_column_mean_to_be_between``. If ``meta`` has ``history``, the first gets it in the place of ``partition_object``, the
second in the place of its limits. The record of ``ops.quality`` has the counts. Pure.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.suite_files import text_of

# Counts of a column, as JSON keeps them: pairs of a value and how often it came; of a mean, the pairs of _ROWS and _SUM.
Counts = Sequence[Sequence[Any]]
_SHARES, _MEAN, _META = "expect_column_kl_divergence_to_be_less_than", "expect_column_mean_to_be_between", "history"
_ROWS, _SUM = "rows", "sum"
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
    kwargs, history = expectation["kwargs"], expectation["meta"][_META]
    if expectation["type"] not in (_SHARES, _MEAN):
        return f"only {_SHARES} and {_MEAN} follow history: leave out meta.{_META}"
    if expectation["type"] == _SHARES and (history is not True or {*kwargs} != {"column", "threshold"}):
        return f"write a column and a threshold, and meta.{_META}: true, because history is the partition"
    is_part = isinstance(history, int | float) and not isinstance(history, bool) and history > 0
    if expectation["type"] == _MEAN and (not is_part or {*kwargs} != {"column"}):
        return f"name the column alone, and in meta.{_META} by which part of it the mean may differ, such as 0.5"
    if kwargs["column"] in pii:
        return "of a personal column no values are kept, not even how many there are of each"
    return ""


def against_history(column: str) -> dict[str, Any]:
    """An expectation that warns when the shares of the values differ from history."""
    kwargs = {"column": column, "threshold": _USUAL_THRESHOLD}
    return {"type": _SHARES, "kwargs": kwargs, "severity": "warning", "meta": {_META: True}}


def name_of(expectation: Mapping[str, Any]) -> str:
    """What the history of an expectation is known by."""
    return text_of(expectation["type"], expectation["kwargs"])


def filled(expectation: Mapping[str, Any], history: Counts, rows: int) -> dict[str, Any]:
    """The expectation with what its history says. Few rows, or few before them, are only counted: it is met."""
    if not follows_history(expectation):
        return dict(expectation)
    if expectation["type"] == _MEAN:
        limits = _limits(expectation["meta"][_META], dict(map(tuple, history)), rows)
        return {**expectation, "kwargs": {**expectation["kwargs"], **limits}}
    known = sum(count for _, count in history)
    kwargs = {**expectation["kwargs"], "bucketize_data": False}
    if min(rows, known) < _LEAST_ROWS:
        return {**expectation, "kwargs": {**kwargs, "threshold": None}}
    partition = {"values": [v for v, _ in history], "weights": [count / known for _, count in history]}
    return {**expectation, "kwargs": {**kwargs, "partition_object": partition, "tail_weight_holdout": _UNKNOWN}}


def _limits(part: float, history: Mapping[str, float], rows: int) -> dict[str, float]:
    if min(rows, history.get(_ROWS, 0)) < _LEAST_ROWS:
        # The library wants a limit.
        return {"min_value": -sys.float_info.max}
    usual = history[_SUM] / history[_ROWS]
    return {"min_value": usual - abs(usual) * part, "max_value": usual + abs(usual) * part}


def counted(expectation: Mapping[str, Any], result: Mapping[str, Any], rows: int) -> Counts:
    """The counts that Great Expectations has found of each value, or the sum of all.

    Args:
        expectation: one that follows history.
        rows: how many rows it looked at.
    """
    observed = result.get("result") or {}
    if expectation["type"] == _MEAN:
        mean = observed.get("observed_value")
        return [] if mean is None else [[_ROWS, rows], [_SUM, mean * rows]]
    found = observed.get("details", {}).get("observed_partition", {})
    pairs = zip(found.get("values", ()), found.get("weights", ()), strict=True)
    return [[value, round(weight * rows)] for value, weight in pairs if weight]


def with_slice(name: str, history: Counts, new: Counts) -> Counts:
    """The history with the counts of a slice: old rows are forgotten little by little.

    Args:
        name: of the expectation (:func:`name_of`).
    """
    total: dict[Any, float] = dict(map(tuple, history))
    for value, count in new:
        total[value] = total.get(value, 0) + count
    rows = total.get(_ROWS, 0) if name.startswith(_MEAN) else sum(total.values())
    scale = min(1, _REMEMBERED_ROWS / (rows or 1))
    if name.startswith(_MEAN):
        return [[key, value * scale] for key, value in total.items()]
    most = sorted(total.items(), key=lambda of: -of[1])[:_MOST_VALUES]
    return [[value, round(count * scale, 1)] for value, count in most if round(count * scale, 1)]


def difference(expectation: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What differs from history, in words: the value whose share does most, or the mean; empty where nothing was compared."""
    if not follows_history(expectation):
        return ""
    if expectation["type"] == _MEAN:
        limits = (result.get("expectation_config") or {}).get("kwargs", {})
        observed = (result.get("result") or {}).get("observed_value")
        usual = (limits.get("min_value", 0) + limits.get("max_value", 0)) / 2
        return "" if observed is None else f"the mean is {observed:.6g}, and was {usual:.6g} before"
    details = (result.get("result") or {}).get("details", {})
    now, before = (details.get(name, {}) for name in ("observed_partition", "expected_partition"))
    shares = [*zip(now.get("values", ()), now.get("weights", ()), before.get("weights", ()), strict=True)]
    if not shares:
        return ""
    value, share, usual = max(shares, key=lambda of: abs(of[1] - of[2]))
    return f"{value!r} is {share:.0%} of the rows, and was {usual:.0%} before"
