"""The files of the suites: one JSON file of Great Expectations for each table, and what each expectation does when it fails."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings

# An expectation that puts rows aside has this in its ``meta``. Great Expectations keeps ``meta``, and gives it no meaning.
QUARANTINE = "quarantine"
_WARNINGS = ("warning", "info")
_SEVERITIES = ("critical", *_WARNINGS)


class SuiteMissing(LockstepError):
    """A table has no suite, or its file is not a valid suite."""


class Severity(StrEnum):
    """What happens when an expectation fails."""

    WARN = "warn"  # it is recorded and shown, and the gate stays open
    QUARANTINE = "quarantine"  # the rows go aside with the reason, and the rest goes on
    FAIL = "fail"  # nothing is promoted: readers keep the last good version


def severity_of(expectation: Mapping[str, Any]) -> Severity:
    """What happens when the expectation fails: ``severity`` is Great Expectations' own field, ``meta.quarantine`` is ours.

    Raises:
        ValueError: the two contradict each other, or one has an unknown value. The message says what to write.
    """
    field, aside = expectation.get("severity", "critical"), (expectation.get("meta") or {}).get(QUARANTINE, False)
    if field not in _SEVERITIES:
        raise ValueError(f"there is no severity {field!r}: write one of {', '.join(_SEVERITIES)}")
    if not isinstance(aside, bool):
        raise ValueError(f"its meta.{QUARANTINE} is {aside!r}: write true, or leave it out")
    if aside and field in _WARNINGS:
        raise ValueError(
            f"a {field} leaves the rows where they are, and meta.{QUARANTINE} puts them aside: leave one of the two out"
        )
    if aside:
        return Severity.QUARANTINE
    return Severity.WARN if field in _WARNINGS else Severity.FAIL


def text_of(kind: str, arguments: Mapping[str, Any]) -> str:
    """An expectation as people read it: ``expect_column_values_to_be_between(column='amount', min_value=0)``."""
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def suite_text(table: str, notes: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """The file of a suite, with one expectation a line, so that a person can review it. Pure."""
    # Neither json.dumps nor Great Expectations can write it so. The library adds its version itself.
    lines = ",\n".join(f"    {json.dumps(check)}" for check in checks)
    return (
        f'{{\n  "name": {json.dumps(table)},\n  "notes": {json.dumps(notes)},\n  "expectations": [\n{lines}\n  ]\n}}\n'
    )


def root(settings: "Settings") -> Path:
    """The directory of the suites."""
    return settings.project / "expectations"


def suite_file(settings: "Settings", table: str) -> Path:
    """The path of the suite of ``layer.name``."""
    layer, _, name = table.partition(".")
    return root(settings) / layer / f"{name}.json"


def read(settings: "Settings", table: str) -> dict[str, Any]:
    """Read the table's suite: ``name``, ``expectations`` (each with ``type``, ``kwargs``, ``severity``, ``meta``) and ``meta``.

    Raises:
        SuiteMissing: the file does not exist, or it is not a valid suite.
    """
    file = suite_file(settings, table)
    shown = file.relative_to(settings.project)
    try:
        suite = json.loads(file.read_text())
    except FileNotFoundError:
        raise SuiteMissing(f"{table} has no suite: write {shown}") from None
    except json.JSONDecodeError as error:
        raise SuiteMissing(f"{shown} is not JSON ({error}): correct it") from None
    if suite.get("name") != table or not suite.get("expectations"):
        raise SuiteMissing(f"{shown} must have the name {table!r} and at least one expectation")
    for expectation in suite["expectations"]:
        try:
            severity_of(expectation)
        except ValueError as error:
            text = text_of(expectation.get("type", "?"), expectation.get("kwargs", {}))
            raise SuiteMissing(f"{shown}: {text}: {error}") from None
    return dict(suite)


def digest(settings: "Settings", table: str) -> str | None:
    """What the file of the table's suite is known by; another file has another. None: the table has no suite."""
    file = suite_file(settings, table)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else None


def quarantining(settings: "Settings", table: str) -> list[dict[str, Any]]:
    """The expectations of the table's suite that put rows aside; none if it has no suite.

    Raises:
        SuiteMissing: the file is not a valid suite.
    """
    if not suite_file(settings, table).exists():
        return []
    expectations = read(settings, table)["expectations"]
    return [one for one in expectations if severity_of(one) is Severity.QUARANTINE]
