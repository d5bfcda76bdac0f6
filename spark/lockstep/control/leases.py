"""Leases: one writer at a time for each table. A lease ends with the connection of its holder, also when the holder dies."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg2.errors import LockNotAvailable

from lockstep.control.database import control
from lockstep.errors import LeaseHeld

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# PostgreSQL shows the two halves of a lock's number in two columns.
_HELD = """
SELECT known.name, application_name, pid, backend_start FROM pg_stat_activity JOIN pg_locks USING (pid)
LEFT JOIN unnest(%s::text[]) known (name) ON hashtextextended(known.name, 0) = (classid::bigint << 32 | objid::bigint)
WHERE locktype = 'advisory' AND granted AND datname = current_database() AND application_name LIKE 'lockstep:%%'
ORDER BY backend_start, known.name
"""


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
                    f"Wait for it, or stop that run in Airflow; if it hangs, `lockstep leases end {name}`."
                ) from None
        cursor.execute("RESET statement_timeout")
        yield connection


@dataclass(frozen=True)
class Held:
    """A lease that somebody holds.

    Args:
        name: what is held, such as a table; None: none of the names that were asked for.
        holder: what its connection says of itself: ``lockstep:<first name>:<holder>``.
        backend: the process of PostgreSQL that serves the holder.
        since: when the holder connected (UTC).
    """

    name: str | None
    holder: str
    backend: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.holder} (backend {self.backend}, since {self.since:%F %T} UTC)"


def held(settings: "Settings", names: Iterable[str]) -> list[Held]:
    """The leases that are held, oldest first.

    Args:
        names: that there may be leases of. PostgreSQL knows a lease by a number alone.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        return _held(cursor, names)


def end(settings: "Settings", found: Held) -> bool:
    """End the connection of a lease's holder, and with it the lease. What it was doing fails; False: it was gone already."""
    with control(settings) as connection, connection.cursor() as cursor:
        # The number of a backend may be another's by now.
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE (pid, application_name, backend_start) = (%s, %s, %s)",
            (found.backend, found.holder, found.since),
        )
        return cursor.fetchone() == (True,)


def _held(cursor: Any, names: Iterable[str]) -> list[Held]:
    cursor.execute(_HELD, ([*names],))
    return [Held(name, holder, pid, at.astimezone(UTC)) for name, holder, pid, at in cursor.fetchall()]


def _holder(cursor: Any, table: str) -> str:
    found = next((one for one in _held(cursor, [table]) if one.name), None)
    return str(found) if found else "somebody who just left"
