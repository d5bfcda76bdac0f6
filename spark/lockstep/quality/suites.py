"""The suites: one JSON file of Great Expectations for each table, at ``expectations/<layer>/<table>.json``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.contracts import CONTRACTS
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings


class SuiteMissing(LockstepError):
    """A table has no suite, or its file is not a valid suite."""


def suite_file(settings: "Settings", table: str) -> Path:
    """The path of the suite of ``layer.name``."""
    layer, _, name = table.partition(".")
    return _root(settings) / layer / f"{name}.json"


def gated(settings: "Settings") -> list[str]:
    """The tables that have a suite, as ``layer.name``, sorted."""
    return sorted(f"{file.parent.name}.{file.stem}" for file in _root(settings).glob("*/*.json"))


def load(settings: "Settings", table: str) -> dict[str, Any]:
    """Read the table's suite: ``name``, ``expectations`` (each with ``type``, ``kwargs``, ``meta``) and ``meta``.

    Raises:
        SuiteMissing: the file does not exist, or it is not a valid suite.
    """
    file = suite_file(settings, table)
    try:
        suite = json.loads(file.read_text())
    except FileNotFoundError:
        raise SuiteMissing(f"{table} has no suite: write {file.relative_to(settings.project)}") from None
    except json.JSONDecodeError as error:
        raise SuiteMissing(f"{file.relative_to(settings.project)} is not JSON ({error}): correct it") from None
    if suite.get("name") != table or not suite.get("expectations"):
        raise SuiteMissing(
            f"{file.relative_to(settings.project)} must have the name {table!r} and at least one expectation"
        )
    return dict(suite)


def pii_columns(table: str) -> frozenset[str]:
    """The columns of the table whose values are never shown in messages, not even as tokens."""
    contract = CONTRACTS.get(table.partition(".")[2])
    return frozenset(contract.pii) if contract else frozenset()


def _root(settings: "Settings") -> Path:
    return settings.project / "expectations"
