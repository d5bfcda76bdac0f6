"""What became of each expectation of a gate: one check, from Great Expectations' result. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.quality.distributions import difference
from lockstep.suite_files import Severity, severity_of, text_of

# An observed value may be a whole distribution. This much shows which.
_LONGEST_VALUE = 200
# Where rows that should be aside came from.
_BEFORE_THE_RULE = "they came before this rule, and a replay of silver puts them aside"


@dataclass(frozen=True)
class Check:
    """One expectation of a suite, held against the new rows of a table.

    Args:
        expectation: the expectation with its arguments, as people read it.
        columns: the columns that it is about; none for one about the table.
        severity: what happens when it fails.
        observed: the value of the table that was compared, as JSON; None where rows are counted, or the values are personal.
        unexpected: how many rows do not hold; None where no rows are counted.
        elements: how many rows were looked at; None where that is not known.
        reason: why it failed, in one sentence without personal values; empty if it passed.
    """

    expectation: str
    columns: tuple[str, ...]
    severity: Severity
    success: bool
    observed: str | None = None
    unexpected: int | None = None
    elements: int | None = None
    reason: str = ""

    @property
    def shuts(self) -> bool:
        """Whether the gate is shut because of it."""
        return not self.success and self.severity is not Severity.WARN


def columns_of(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that an expectation names, in the order of its arguments."""
    named = [value for key, value in kwargs.items() if key.startswith("column") and isinstance(value, str)]
    return (*named, *kwargs.get("column_list", ()))


def check(expectation: Mapping[str, Any], result: Mapping[str, Any], pii: frozenset[str], rows: int) -> Check:
    """The check of an expectation.

    Args:
        expectation: as the suite has it.
        result: as Great Expectations gives it. It may lack all counts if the expectation is met.
        pii: the columns whose values are never shown.
        rows: how many rows the slice has.
    """
    kwargs = _shown(expectation)
    found, success, columns = result.get("result") or {}, bool(result.get("success")), columns_of(kwargs)
    observed = found.get("observed_value")
    counts_rows = "unexpected_count" in found or (success and observed is None and bool(columns))
    severity = severity_of(expectation)
    reason = "" if success else sentence(expectation, result, pii)
    if reason and severity is Severity.QUARANTINE:
        reason = f"{reason}; {_BEFORE_THE_RULE}"
    return Check(
        text_of(expectation["type"], kwargs),
        columns,
        severity,
        success,
        None if observed is None or {*columns} & pii else json.dumps(observed, default=str)[:_LONGEST_VALUE],
        found.get("unexpected_count", 0) if counts_rows else None,
        found.get("element_count", rows),
        reason,
    )


def sentence(expectation: Mapping[str, Any], result: Mapping[str, Any], pii: frozenset[str]) -> str:
    """One line with the expectation that failed, for how many rows, and some of their values unless those are personal."""
    kwargs = _shown(expectation)
    observed, is_personal = result.get("result") or {}, bool({*columns_of(kwargs)} & pii)
    text = text_of(expectation["type"], kwargs)
    if error := _error(result.get("exception_info") or {}):
        return f"{text} could not be checked: {error}"
    if differs := difference(expectation, result):
        text += f": {differs}"
    elif "unexpected_count" in observed:
        text += f": {observed['unexpected_count']} of {observed.get('element_count')} rows do not hold"
    elif "observed_value" in observed and not is_personal:
        text += f": observed {observed['observed_value']!r}"
    if is_personal:
        return f"{text}; values of personal columns are not shown"
    samples = [value for value in observed.get("partial_unexpected_list") or [] if value is not None]
    return f"{text}, such as {samples}" if samples else text


def _shown(expectation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in expectation["kwargs"].items() if name != "row_condition"}


def _error(info: Mapping[str, Any]) -> str | None:
    """The first line of the exception's message. Great Expectations has one report, or one for each metric."""
    reports = [info, *(value for value in info.values() if isinstance(value, dict))]
    messages = [str(r.get("exception_message")) for r in reports if r.get("raised_exception")]
    return messages[0].strip().partition("\n")[0] if messages else None
