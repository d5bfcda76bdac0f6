"""Whether two rows of a key are the same within the errors that they state. Pure."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

# The rows of a view without approximate columns are compared exactly.
EXACT: Mapping[str, str] = {}
# A sketch leaves out values that are not above its error for certain. Another sketch over the same rows may count such a value
# higher by the error, and give it.
_LEFT_OUT_BELOW = 3


def agree(one: str | None, other: str | None, approximate: Mapping[str, str] = EXACT) -> bool:
    """Whether two rows are equal, but for columns that are approximate, and those are within the errors that the rows state.

    Numbers may differ by the sum of both errors. Text has no distance: it may differ if both errors are above zero. A row may be
    missing if the other one is so close to zero that a sketch may leave it out.

    Args:
        one, other: the values of the rows as JSON, without those of the key; None: there is no row.
        approximate: the approximate columns, each with the column that has its error.
    """
    if one == other:
        return True
    if not approximate:
        return False
    left, right = _values(one), _values(other)
    if not left or not right:
        return all(_near_zero((left or right)[name], (left or right)[error]) for name, error in approximate.items())
    exact = (left.keys() | right.keys()) - {*approximate, *approximate.values()}
    return all(left.get(name) == right.get(name) for name in exact) and all(
        _within(left[name], right[name], left[error], right[error]) for name, error in approximate.items()
    )


def _values(row: str | None) -> dict[str, Any]:
    return json.loads(row, parse_float=Decimal) if row else {}


def _within(one: Any, other: Any, error_of_one: Any, error_of_other: Any) -> bool:
    if one == other:
        return True
    if _is_number(one) and _is_number(other):
        return bool(abs(one - other) <= (error_of_one or 0) + (error_of_other or 0))
    return bool(error_of_one and error_of_other)


def _near_zero(value: Any, error: Any) -> bool:
    return bool(error) and (not _is_number(value) or abs(value) <= _LEFT_OUT_BELOW * error)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
