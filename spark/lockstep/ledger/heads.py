"""The head of each ledger: its newest commit, as the control database knows it.

A Delta log cannot show that its own newest commit is missing. So the head of each bronze ledger is written to PostgreSQL
after each commit, and the next run compares the two.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.ledger.ranges import Range


@dataclass(frozen=True)
class Head:
    """The newest commit that a ledger is known to have had."""

    version: int
    seq: int


def head(connection: "Connection", table: str) -> Head | None:
    """The ledger's head; None for a table that never had a commit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT version, seq FROM ledger_heads WHERE table_name = %s", (table,))
        row = cursor.fetchone()
    return Head(*row) if row else None


def advance(connection: "Connection", table: str, version: int, seq: int, ranges: "list[Range]") -> None:
    """Write the head. It never moves back."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_heads (table_name, version, seq, ranges) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (table_name) DO UPDATE SET version = excluded.version, seq = excluded.seq, "
            "ranges = excluded.ranges, checked_at = now() WHERE ledger_heads.seq <= excluded.seq",
            (table, version, seq, json.dumps([r.as_dict() for r in ranges])),
        )
