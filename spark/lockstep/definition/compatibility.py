"""Whether a contract keeps what an earlier version of it has promised. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from lockstep.contracts import Contract
from lockstep.definition.column_changes import column_changes
from lockstep.formats import SchemaInvalid
from lockstep.formats.compatible import unreadable

# What decides that, of a contract.
_PROMISED = ("kind", "columns", "required", "format", "schema", "message", "wire_format")
Promise = Mapping[str, Any]


def promise(contract: Contract) -> dict[str, Any]:
    """What the contract promises, as JSON has it."""
    promised = {name: getattr(contract, name) for name in _PROMISED}
    return promised | {"columns": dict(contract.columns), "required": [*contract.required]}


def broken_promises(before: Promise, now: Contract) -> list[str]:
    """A sentence for each thing that the contract does not keep: tables cannot follow it, or records cannot be read by it.

    Args:
        before: what :func:`promise` said of its earlier version.
    """
    return [*_broken(before, now)]


def _broken(before: Promise, now: Contract) -> Iterator[str]:
    yield from column_changes(before["columns"], now.columns).refused
    for name in now.required:
        if name in before["columns"] and name not in before["required"]:
            yield f"the column {name} is required now: rows without it go to quarantine"
    for name in ("kind", "format", "wire_format"):
        if before[name] != getattr(now, name):
            yield f"its {name} was {before[name]}, and is {getattr(now, name)}: records of before cannot be read any more"
    if now.format != "json" and before["format"] == now.format:
        try:
            reasons = unreadable(now.format, before["schema"], now.schema, now.message)
        except SchemaInvalid as error:
            reasons = [f"its schema before cannot be compared: {error}"]
        for reason in reasons:
            yield f"its schema cannot read what the one before has written: {reason}"
