"""Leases: one writer at a time for each table. A lease ends with the connection of its holder, also when the holder dies."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psycopg2.errors import LockNotAvailable

from lockstep.control.database import control
from lockstep.errors import LeaseHeld

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings


@contextmanager
def lease(
    settings: "Settings", tables: str | Sequence[str], holder: str, wait_seconds: int = 120
) -> "Iterator[Connection]":
    """Hold the tables for writing, until the block ends or this process dies.

    They are session-level advisory locks, which PostgreSQL releases when the connection ends.

    Raises:
        LeaseHeld: somebody else held one of them for the whole ``wait_seconds``; the message names the holder.
    """
    names = [tables] if isinstance(tables, str) else sorted(tables)
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", (f"lockstep:{names[0]}:{holder}"[:63],))
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", (f"{wait_seconds}s",))
        # The wait for a lock has its own limit.
        cursor.execute("SET statement_timeout = 0")
        for name in names:
            try:
                cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (name,))
            except LockNotAvailable:
                raise LeaseHeld(
                    f"{name} is being written by {_holder(cursor, name)}, and has been for {wait_seconds} s. "
                    "Wait for it, or stop that run in Airflow."
                ) from None
        cursor.execute("RESET statement_timeout")
        yield connection


def _holder(cursor: Any, table: str) -> str:
    # PostgreSQL shows the two halves of a lock's number in two columns.
    cursor.execute(
        "SELECT application_name, pid, backend_start FROM pg_stat_activity JOIN pg_locks USING (pid) "
        "WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%s, 0)",
        (table,),
    )
    row = cursor.fetchone()
    return f"{row[0]} (backend {row[1]}, since {row[2]:%F %T} UTC)" if row else "somebody who just left"
