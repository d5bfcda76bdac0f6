"""What was sent directly, what waits, and what was given up: one row per alert and sink. PostgreSQL, database ``lockstep``.

The row is written before the alert is sent, so a killed sender leaves it waiting, and the next one sends it; it is marked after
the receiver has taken it, so the same alert is not sent again by anybody who looks here first.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.sinks.sink import Message

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

REMEMBERED = "30 days"


class State(StrEnum):
    """What became of an alert. ``sent`` ones are remembered for 30 days, the others until somebody deletes them."""

    WAITING = "waiting"
    SENT = "sent"
    DROPPED = "dropped"
    REFUSED = "refused"


def prepare(connection: "Connection", sink: str) -> None:
    """Forget what was sent long ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM delivery_outbox WHERE sink = %s AND state = 'sent' AND at < now() - %s::interval",
            (sink, REMEMBERED),
        )


def put(connection: "Connection", sink: str, rows: list[Message]) -> int:
    """Put the alerts in line; one that is known stays as it is. Returns how many are new."""
    with connection.cursor() as cursor:
        added = execute_values(
            cursor,
            "INSERT INTO delivery_outbox (sink, id, body) VALUES %s ON CONFLICT DO NOTHING RETURNING id",
            [(sink, row.id, row.value) for row in rows],
            fetch=True,
        )
    return len(added)


def waiting(connection: "Connection", sink: str) -> list[Message]:
    """What waits, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, body FROM delivery_outbox WHERE sink = %s AND state = 'waiting' ORDER BY place", (sink,)
        )
        return [Message(id, id, body) for id, body in cursor.fetchall()]


def mark(connection: "Connection", sink: str, ids: list[str], state: State, reason: str | None = None) -> None:
    """Write down what became of the alerts."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_outbox SET state = %s, reason = %s, at = now() WHERE sink = %s AND id = ANY(%s)",
            (state, reason, sink, ids),
        )


def counts(connection: "Connection") -> dict[str, dict[str, int]]:
    """By sink and state, how many alerts; a sink that never sent is not named."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sink, state, count(*) FROM delivery_outbox GROUP BY sink, state ORDER BY sink, state")
        found: dict[str, dict[str, int]] = {}
        for sink, state, number in cursor.fetchall():
            found.setdefault(sink, dict.fromkeys(State, 0))[state] = number
        return found


def forget(connection: "Connection", sink: str) -> None:
    """Delete all that is known of the sink's alerts: whatever is sent again then is sent as new."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM delivery_outbox WHERE sink = %s", (sink,))
