"""The suites: Great Expectations' own JSON, one file per table, at ``expectations/<layer>/<table>.json``."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from lockstep.contracts import CONTRACTS
from lockstep.errors import LockstepError
from lockstep.settings import PROJECT

ROOT = PROJECT / "expectations"


class SuiteMissing(LockstepError):
    """A table is to be gated, but nobody wrote down what is expected of it."""


def suite_file(table: str) -> Path:
    """Where the suite of ``layer.name`` lies."""
    layer, _, name = table.partition(".")
    return ROOT / layer / f"{name}.json"


def gated() -> list[str]:
    """The tables that have a suite, as ``layer.name``, sorted."""
    return sorted(f"{file.parent.name}.{file.stem}" for file in ROOT.glob("*/*.json"))


@cache
def load(table: str) -> dict[str, Any]:
    """The table's suite as it is in its file: ``name``, ``expectations`` (``type``, ``kwargs``, ``meta``) and ``meta``.

    Raises:
        SuiteMissing: there is no such file, or it is not a suite.
    """
    file = suite_file(table)
    try:
        suite = json.loads(file.read_text())
    except FileNotFoundError:
        raise SuiteMissing(f"{table} has no suite: write {file.relative_to(PROJECT)}") from None
    except json.JSONDecodeError as error:
        raise SuiteMissing(f"{file.relative_to(PROJECT)} is not JSON ({error}): correct it") from None
    if suite.get("name") != table or not suite.get("expectations"):
        raise SuiteMissing(f"{file.relative_to(PROJECT)} must have the name {table!r} and at least one expectation")
    return dict(suite)


def personal_columns(table: str) -> frozenset[str]:
    """The columns of the table whose values must never be shown, not even as tokens."""
    contract = CONTRACTS.get(table.partition(".")[2])
    return frozenset(contract.personal) if contract else frozenset()
