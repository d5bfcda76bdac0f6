"""What must not live in the lake: leases on tables, and the head of each ledger. PostgreSQL, database ``lockstep``.

A Delta log cannot witness its own missing tip, so the head of every bronze ledger is written here after each commit.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2.errors import LockNotAvailable

from lockstep.errors import LeaseHeld

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.ingest.ranges import Range
    from lockstep.settings import Settings

# Under a lock, because two that create the same table at once do collide, IF NOT EXISTS or not; one statement list is one
# transaction, which lets go of the lock.
SCHEMA = """
SELECT pg_advisory_xact_lock(hashtextextended('ledger_heads', 0));
CREATE TABLE IF NOT EXISTS ledger_heads (
    table_name  text PRIMARY KEY,
    version     bigint NOT NULL,
    seq         bigint NOT NULL,
    ranges      jsonb NOT NULL,
    checked_at  timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True)
class Head:
    """The newest commit that a ledger is known to have had, and the position at which it was last looked at."""

    version: int
    seq: int
    ranges: tuple[dict[str, Any], ...]


@contextmanager
def control(settings: "Settings") -> "Iterator[Connection]":
    """A connection to the control database, in autocommit."""
    with closing(psycopg2.connect(settings.dsn("lockstep"), application_name="lockstep")) as connection:
        connection.autocommit = True
        yield connection


@contextmanager
def lease(settings: "Settings", table: str, holder: str, wait_seconds: int = 120) -> "Iterator[Connection]":
    """Hold the table for writing, until the block ends or this process dies.

    A session-level advisory lock: PostgreSQL lets go of it when the connection ends, however it ends.

    Raises:
        LeaseHeld: somebody else held it for all of ``wait_seconds``; the message names the holder.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", (f"lockstep:{table}:{holder}"[:63],))
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", (f"{wait_seconds}s",))
        try:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (table,))
        except LockNotAvailable:
            raise LeaseHeld(
                f"{table} is being written by {_holder(cursor, table)}, and was for {wait_seconds} s. "
                "Wait for it, or stop that run in Airflow."
            ) from None
        yield connection


def _holder(cursor: Any, table: str) -> str:
    cursor.execute(
        "SELECT application_name, pid, backend_start FROM pg_stat_activity JOIN pg_locks USING (pid) "
        "WHERE locktype = 'advisory' AND granted AND application_name LIKE %s",
        (f"lockstep:{table}:%",),
    )
    row = cursor.fetchone()
    return f"{row[0]} (backend {row[1]}, since {row[2]:%F %T} UTC)" if row else "somebody who just left"


def head(connection: "Connection", table: str) -> Head | None:
    """The ledger's head as last written, or None for a table that never had a commit."""
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA)
        cursor.execute("SELECT version, seq, ranges FROM ledger_heads WHERE table_name = %s", (table,))
        row = cursor.fetchone()
    return Head(row[0], row[1], tuple(row[2])) if row else None


def advance(connection: "Connection", table: str, version: int, seq: int, ranges: "list[Range]") -> None:
    """Write the head; it never goes back."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_heads (table_name, version, seq, ranges) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (table_name) DO UPDATE SET version = excluded.version, seq = excluded.seq, "
            "ranges = excluded.ranges, checked_at = now() WHERE ledger_heads.seq <= excluded.seq",
            (table, version, seq, json.dumps([r.as_dict() for r in ranges])),
        )
