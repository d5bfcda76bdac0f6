"""The outbox of the direct sinks: one row per alert and sink, with its state. PostgreSQL, database ``lockstep``.

A sink writes the row before it sends the alert. If the sink is killed, the next sender finds the alert waiting, and sends it. The
sink marks the row after the receiver took the alert, so no later sender sends that alert again.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.sinks.message import Message

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

# An alert that is raised again after this time is sent again. A query that is reset to an earlier point raises its alerts again.
REMEMBERED = "30 days"


class State(StrEnum):
    """The state of an alert. Sent alerts are kept for 30 days, the others until somebody deletes them."""

    WAITING = "waiting"
    SENT = "sent"
    DROPPED = "dropped"
    REFUSED = "refused"


def prepare(connection: "Connection", sink: str) -> None:
    """Delete the alerts that were sent long ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM delivery_outbox WHERE sink = %s AND state = 'sent' AND at < now() - %s::interval",
            (sink, REMEMBERED),
        )


def unknown(connection: "Connection", sink: str, rows: list[Message]) -> list[Message]:
    """Those of the alerts that the outbox does not have, in whatever state."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM delivery_outbox WHERE sink = %s AND id = ANY(%s)", (sink, [row.id for row in rows])
        )
        known = {id for (id,) in cursor.fetchall()}
    return [row for row in rows if row.id not in known]


def put(connection: "Connection", sink: str, rows: list[Message]) -> int:
    """Add the alerts to the queue; return how many are new. An alert that is there already stays as it is."""
    with connection.cursor() as cursor:
        added = execute_values(
            cursor,
            "INSERT INTO delivery_outbox (sink, id, body) VALUES %s ON CONFLICT DO NOTHING RETURNING id",
            [(sink, row.id, row.value) for row in rows],
            fetch=True,
        )
    return len(added)


def waiting(connection: "Connection", sink: str, most: int) -> list[Message]:
    """The alerts that wait, oldest first; at most so many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, body FROM delivery_outbox WHERE sink = %s AND state = 'waiting' ORDER BY place LIMIT %s",
            (sink, most),
        )
        return [Message(id, id, body) for id, body in cursor.fetchall()]


def number_waiting(connection: "Connection", sink: str) -> int:
    """How many alerts wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM delivery_outbox WHERE sink = %s AND state = 'waiting'", (sink,))
        [(number,)] = cursor.fetchall()
    return int(number)


def mark(connection: "Connection", sink: str, id: str, state: State, reason: str | None = None) -> None:
    """Record the new state of an alert."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_outbox SET state = %s, reason = %s, at = now() WHERE sink = %s AND id = %s",
            (state, reason, sink, id),
        )


def drop_waiting(connection: "Connection", sink: str, reason: str) -> list[str]:
    """Give up the alerts that wait; return their ids, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_outbox SET state = 'dropped', reason = %s, at = now() WHERE sink = %s AND state = 'waiting' "
            "RETURNING place, id",
            (reason, sink),
        )
        return [id for _, id in sorted(cursor.fetchall())]


def counts(connection: "Connection") -> dict[str, dict[str, int]]:
    """How many alerts there are, by sink and state. A sink that never sent is missing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sink, state, count(*) FROM delivery_outbox GROUP BY sink, state ORDER BY sink, state")
        by_sink: dict[str, dict[str, int]] = {}
        for sink, state, number in cursor.fetchall():
            by_sink.setdefault(sink, dict.fromkeys(State, 0))[state] = number
        return by_sink


def forget(connection: "Connection", sink: str) -> None:
    """Delete the sink's alerts, whatever their state. An alert that is sent again after that counts as new."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM delivery_outbox WHERE sink = %s", (sink,))
