"""The head of each ledger: its newest commit, as the control database knows it.

A Delta log cannot show that its own newest commit is missing. So the head of each bronze ledger is written to PostgreSQL
after each commit, and the next run compares the two.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.ledger.ranges import Range


@dataclass(frozen=True)
class Head:
    """The newest commit that a ledger is known to have had.

    Args:
        ends: per partition, the offset at which the ledger ended.
        epochs: per partition, the leader epoch in which it was read up to there.
    """

    version: int
    seq: int
    ends: Mapping[int, int] = field(default_factory=dict)
    epochs: Mapping[int, int] = field(default_factory=dict)


def head(connection: "Connection", table: str) -> Head | None:
    """The ledger's head; None for a table that never had a commit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT version, seq, ranges FROM ledger_heads WHERE table_name = %s", (table,))
        row = cursor.fetchone()
    if row is None:
        return None
    version, seq, ranges = row
    ends = {r["partition"]: r["end"] for r in ranges}
    return Head(version, seq, ends, {r["partition"]: r["epoch"] for r in ranges if r.get("epoch") is not None})


def advance(
    connection: "Connection",
    table: str,
    version: int,
    seq: int,
    ranges: Iterable["Range"],
    epochs: Mapping[int, int] | None = None,
) -> None:
    """Write the head. It never moves back."""
    known = epochs or {}
    text = json.dumps([r.as_dict() | {"epoch": known.get(r.partition)} for r in ranges])
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_heads (table_name, version, seq, ranges) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (table_name) DO UPDATE SET version = excluded.version, seq = excluded.seq, "
            "ranges = excluded.ranges, checked_at = now() WHERE ledger_heads.seq <= excluded.seq",
            (table, version, seq, text),
        )
