"""The predicates that the platform writes in SQL, evaluated in Python: so it is the real predicates that decide."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import CodeType
from typing import Any

_WORDS = {"AND": "and", "OR": "or", "NOT": "not", "true": "True", "false": "False", "IS NOT DISTINCT FROM": "=="}
_WORD = re.compile(rf"\b({'|'.join(sorted(_WORDS, key=len, reverse=True))})\b")
_LITERAL = re.compile(r"(?:timestamp )?'(\d{4}-[^']+)'|(?<=[<>=] )(\d+)\b", re.IGNORECASE)
_EQUALS = re.compile(r"(?<![<>!=])=(?!=)")


def instant(text: str) -> datetime:
    """The time of a literal; UTC where it has no zone."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _interval(_days: int, _hours: int, _minutes: int, seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _greatest(*values: Any) -> Any:
    # As in SQL, nulls are left out.
    return max(value for value in values if value is not None)


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _array(*values: Any) -> list[Any]:
    return [*values]


_FUNCTIONS = {
    "make_dt_interval": _interval,
    "greatest": _greatest,
    "coalesce": _coalesce,
    "array": _array,
    "__builtins__": {},
}


@lru_cache(maxsize=256)
def _compiled(template: str) -> CodeType:
    return compile(template, template, "eval")


@lru_cache(maxsize=4096)
def _translated(sql: str) -> tuple[CodeType, dict[str, Any]]:
    """The expression in Python, and its literals by name: compiling it is slow, and few expressions differ in more than these."""
    names = dict(_FUNCTIONS)

    def name(literal: re.Match[str]) -> str:
        key = f"literal_{len(names)}"
        names[key] = instant(literal[1]) if literal[1] else int(literal[2])
        return key

    template = _WORD.sub(lambda word: _WORDS[word[1]], _EQUALS.sub("==", _LITERAL.sub(name, sql)))
    return _compiled(template.replace("`", "").strip()), names


def evaluate(sql: str, row: Mapping[str, Any]) -> Any:
    """The value of an expression for a row."""
    code, names = _translated(sql)
    return eval(code, names, row)  # noqa: S307 (the platform's own text)


class Aliased:
    """A row under an alias, such as ``t`` in ``t.offset``."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.__dict__.update(row)


def matches(sql: str, target: Mapping[str, Any], source: Mapping[str, Any]) -> bool:
    """Whether a predicate over the rows ``t`` and ``s`` of a MERGE holds."""
    return bool(evaluate(sql, {"t": Aliased(target), "s": Aliased(source)}))
