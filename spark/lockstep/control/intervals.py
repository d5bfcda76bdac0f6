"""Locks on intervals of tables, in PostgreSQL: a replay excludes backfills and other replays, by name.

A replay holds its intervals from its plan until it is promoted or discarded. Its process may die in between, because the replay
goes on later. A backfill holds its intervals only while its connection lives. Two backfills do not exclude each other here: the
lease on the table does that.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep.control.database import control
from lockstep.definition import View
from lockstep.definition.view import BEGINNING, END, Interval
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# The whole table.
ALWAYS: Interval = (BEGINNING, END)
# One claim at a time: two could both find an interval free, and both take it. Readers are not kept out.
_ONE_AT_A_TIME = "LOCK TABLE interval_locks IN EXCLUSIVE MODE"
# What backfills hold whose connection is gone.
_FREE_DEAD = """
DELETE FROM interval_locks l WHERE backend IS NOT NULL
AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE (a.pid, a.backend_start) = (l.backend, l.backend_start))
"""
_OVERLAP = """
SELECT kind, holder, since, low, high FROM interval_locks
WHERE table_name = %s AND holder <> %s AND low < %s AND high > %s AND NOT (kind = 'backfill' AND %s = 'backfill') LIMIT 1
"""
# What the holder has already is widened. A replay has no connection that must live.
_HOLD = """
INSERT INTO interval_locks (holder, kind, table_name, low, high, backend, backend_start)
SELECT %(holder)s, %(kind)s, %(table)s, %(low)s, %(high)s, a.pid, a.backend_start
FROM (SELECT 1) one LEFT JOIN pg_stat_activity a ON %(kind)s = 'backfill' AND a.pid = pg_backend_pid()
ON CONFLICT (holder, table_name) DO UPDATE SET
low = least(interval_locks.low, excluded.low), high = greatest(interval_locks.high, excluded.high),
backend = excluded.backend, backend_start = excluded.backend_start
"""


def of_gold(view: View, low: datetime, high: datetime) -> Interval:
    """The interval of a view's gold to lock: all of it, where the view is always written as a whole."""
    return ALWAYS if view.upserts else (low, high)


class IntervalHeld(LockstepError):
    """A replay or a backfill holds a part of the interval."""


def claim(settings: "Settings", replay: str, spans: Mapping[str, Interval]) -> None:
    """Hold intervals of tables (UTC) for a replay, all or none. Intervals that it holds already are widened.

    Raises:
        IntervalHeld: names who holds one of them.
    """
    with control(settings) as connection:
        _hold(connection, replay, "replay", spans)


def release(settings: "Settings", replay: str) -> None:
    """Free all intervals of the replay."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM interval_locks WHERE holder = %s", (replay,))


@contextmanager
def backfilling(settings: "Settings", holder: str, spans: Mapping[str, Interval]) -> Iterator[None]:
    """Hold intervals of tables for a backfill, until the block ends or this process dies.

    Raises:
        IntervalHeld: names the replay that holds one of them.
    """
    with control(settings) as connection:
        _hold(connection, holder, "backfill", spans)
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM interval_locks WHERE holder = %s AND backend = pg_backend_pid()", (holder,))


def holders(settings: "Settings") -> list[dict[str, Any]]:
    """Every interval that is held: ``holder``, ``kind``, ``table_name``, ``low``, ``high`` and ``since``, oldest first."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(_FREE_DEAD)
        cursor.execute(
            "SELECT holder, kind, table_name, low, high, since FROM interval_locks ORDER BY since, table_name"
        )
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def holds(settings: "Settings", holder: str) -> bool:
    """Whether the replay or the backfill holds an interval."""
    return any(held["holder"] == holder for held in holders(settings))


def _hold(connection: "Connection", holder: str, kind: str, spans: Mapping[str, Interval]) -> None:
    connection.autocommit = False
    with connection, connection.cursor() as cursor:
        cursor.execute(_ONE_AT_A_TIME)
        cursor.execute(_FREE_DEAD)
        for table, (low, high) in sorted(spans.items()):
            cursor.execute(_OVERLAP, (table, holder, high, low, kind))
            if row := cursor.fetchone():
                raise IntervalHeld(_refusal(table, *row))
            cursor.execute(_HOLD, {"holder": holder, "kind": kind, "table": table, "low": low, "high": high})
    connection.autocommit = True


def _refusal(table: str, kind: str, holder: str, since: datetime, low: datetime, high: datetime) -> str:
    is_whole = (low, high) == ALWAYS
    interval = "as a whole" if is_whole else f"for [{low.astimezone(UTC):%F %T}, {high.astimezone(UTC):%F %T})"
    advice = (
        "Wait for it." if kind == "backfill" else f"Promote it, or give it up with `lockstep replay discard {holder}`."
    )
    return f"{table} is held by the {kind} {holder}, since {since.astimezone(UTC):%F %T} UTC, {interval}. {advice}"
