"""The rules of a stream: expectations of its silver suite that put a row aside by the row's own values.

They are found in the suite's file with the contract, and are a part of it. So all that holds for a changed contract holds for a
changed rule: the version of each view that reads the stream changes with it. :mod:`lockstep.refine.rules` applies them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep.suite_files import QUARANTINE, text_of

if TYPE_CHECKING:
    from lockstep.contracts.contract import Contract

_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TIMES = ("TIMESTAMP", "DATE")
_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")
_LONGS = 2**63
Problems = Iterator[str]


@dataclass(frozen=True)
class Rule:
    """An expectation about one column of one row. A null value meets every one but ``expect_column_values_to_not_be_null``.

    Args:
        kind: the type of the expectation.
        column: the column, in the record as the contract reads it.
        arguments: its other arguments, sorted by name. A list is a tuple.
    """

    kind: str
    column: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def kwargs(self) -> dict[str, Any]:
        """The other arguments, by name."""
        return dict(self.arguments)

    def __str__(self) -> str:
        """The expectation as people read it. It is the reason of a row that does not meet it."""
        shown = {name: [*value] if isinstance(value, tuple) else value for name, value in self.arguments}
        return text_of(self.kind, {"column": self.column, **shown})


def rule_of(expectation: Mapping[str, Any]) -> Rule:
    """The rule that an expectation of :func:`problems` without problems is."""
    given = {name: value for name, value in expectation["kwargs"].items() if name != "column" and value is not None}
    arguments = ((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(given.items()))
    return Rule(expectation["type"], expectation["kwargs"]["column"], tuple(arguments))


def problems(expectation: Mapping[str, Any], contract: "Contract") -> list[str]:
    """Every reason why the expectation cannot put rows of the stream aside, each with its fix. Pure."""
    kind, kwargs = str(expectation.get("type")), expectation.get("kwargs") or {}
    if kind not in _KINDS:
        return [
            "it is not about the value of one column in one row, so it does not say which rows to put aside: leave out "
            f"meta.{QUARANTINE}, then it shuts the gate (or is recorded, with the severity warning). What can be put aside: "
            + ", ".join(_KINDS)
        ]
    column = str(kwargs.get("column"))
    if column not in contract.columns:
        return [f"{contract.name} has no column {column!r} in its records: name one of {', '.join(contract.columns)}"]
    if column in contract.pii and kind != _NOT_NULL:
        return [f"{column} is PII: from silver on it is a token, which only {_NOT_NULL} can be asked of"]
    names, check = _KINDS[kind]
    found = [f"a rule for single rows has no {name}: leave it out" for name in kwargs if name not in {"column", *names}]
    return found or [*check(kwargs, contract.columns[column].upper().partition("(")[0])]


def _nothing(_kwargs: Mapping[str, Any], _kind: str) -> Problems:
    yield from ()


def _between(kwargs: Mapping[str, Any], kind: str) -> Problems:
    if kind not in (*_NUMBERS, *_TIMES, "STRING"):
        yield f"values of the type {kind} have no order: use another expectation"
        return
    order = {"order": _instant} if kind in _TIMES else {}
    yield from _bounds(kwargs, lambda value: _fits(value, kind), f"a value of the type {kind}", **order)


def _lengths(kwargs: Mapping[str, Any], kind: str) -> Problems:
    yield from _texts(kind)
    yield from _bounds(kwargs, _is_integer, "a whole number")


def _bounds(
    kwargs: Mapping[str, Any], fits: Callable[[Any], bool], wanted: str, order: Callable[[Any], Any] = lambda one: one
) -> Problems:
    limits = {name: kwargs[name] for name in ("min_value", "max_value") if kwargs.get(name) is not None}
    if not limits:
        yield "it has no limit: set min_value or max_value"
    for name, value in limits.items():
        if not fits(value):
            yield f"{name} is {value!r}: write {wanted}"
            return
    if len(limits) > 1 and order(limits["min_value"]) > order(limits["max_value"]):
        yield f"min_value {limits['min_value']!r} is above max_value {limits['max_value']!r}, so no value could be between"
    for name in ("strict_min", "strict_max"):
        if not isinstance(kwargs.get(name, False), bool):
            yield f"{name} is {kwargs[name]!r}: write true or false"


def _one_length(kwargs: Mapping[str, Any], kind: str) -> Problems:
    yield from _texts(kind)
    if not _is_integer(kwargs.get("value")):
        yield f"value is {kwargs.get('value')!r}: write a whole number"


def _set(kwargs: Mapping[str, Any], kind: str) -> Problems:
    values = kwargs.get("value_set")
    if not isinstance(values, list) or not values:
        yield "it has no values: set value_set to a list"
        return
    for value in values:
        if not _fits(value, kind):
            yield f"value_set has {value!r}: write values of the type {kind}"


def _regex(kwargs: Mapping[str, Any], kind: str) -> Problems:
    yield from _texts(kind)
    try:
        re.compile(kwargs.get("regex", None))
    except (re.error, TypeError) as error:
        yield f"regex is {kwargs.get('regex')!r}, which is no regular expression ({error}): correct it"


def _texts(kind: str) -> Problems:
    if kind != "STRING":
        yield f"it is about texts, and the column is {kind}: use expect_column_values_to_be_between or _to_be_in_set"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LONGS <= value < _LONGS


def _fits(value: Any, kind: str) -> bool:
    """Whether Spark can compare a value of JSON with a column of this type. In ANSI mode, what does not fit fails a query."""
    if kind in _NUMBERS:
        return _is_integer(value) or isinstance(value, float)
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    return isinstance(value, str) and (kind == "STRING" or (kind in _TIMES and _is_time(value)))


def _instant(value: str) -> datetime:
    """A time without a zone is one in UTC."""
    time = datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_NOT_NULL = "expect_column_values_to_not_be_null"
_KINDS: Mapping[str, tuple[Iterable[str], Callable[[Mapping[str, Any], str], Problems]]] = {
    _NOT_NULL: ((), _nothing),
    "expect_column_values_to_be_null": ((), _nothing),
    "expect_column_values_to_be_between": (_BOUNDS, _between),
    "expect_column_values_to_be_in_set": (("value_set",), _set),
    "expect_column_values_to_not_be_in_set": (("value_set",), _set),
    "expect_column_values_to_match_regex": (("regex",), _regex),
    "expect_column_values_to_not_match_regex": (("regex",), _regex),
    "expect_column_value_lengths_to_be_between": (_BOUNDS, _lengths),
    "expect_column_value_lengths_to_equal": (("value",), _one_length),
}
KINDS = tuple(_KINDS)
