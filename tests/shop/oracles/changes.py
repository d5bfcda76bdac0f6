"""Captured tables, as the oracles read them. Plain Python, without any code of the platform."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from tests.shop.oracles.record import Record


class Change(NamedTuple):
    """One change of a row, with the row before it (None: it was inserted) and after it (None: it was deleted)."""

    place: tuple[int, int]
    committed: datetime
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def history(records: Iterable[Record], required: Iterable[str]) -> list[Change]:
    """All changes of a table in the order of the source's log, each once.

    A row without a ``required`` column does not count. Nothing is required of a row that is deleted.
    """
    changes = {}
    for record in records:
        value = record.value
        if not isinstance(value, dict) or not value.get("op") or (value.get("source") or {}).get("lsn") is None:
            continue
        row = value["before"] if value["op"] == "d" else value["after"]
        asked = () if value["op"] == "d" else required
        if row is None or any(row.get(name) is None for name in asked):
            continue
        source = value["source"]
        commit = json.loads(source.get("sequence") or "[null]")[0]
        place = (int(commit or source["lsn"]), int(source["lsn"]))
        committed = datetime.fromtimestamp(source["ts_ms"] / 1000, UTC)
        changes[place, str(sorted(row.items()))] = Change(place, committed, value["before"], value["after"])
    return [change for _, change in sorted(changes.items())]


def current(changes: Iterable[Change], identity: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows that exist at the end."""
    identity = list(identity)
    rows: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    for change in changes:
        row = change.after or change.before or {}
        rows[tuple(row[name] for name in identity)] = change.after
    return (row for row in rows.values() if row is not None)


def money(text: Any) -> Decimal | None:
    """A decimal of three places, as the tables have it."""
    return None if text is None else Decimal(str(text)).quantize(Decimal("0.001"))
