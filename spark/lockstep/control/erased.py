"""What was erased, as the control database knows it.

The offsets of erased records are kept for ever, because Kafka may still have the records: whoever reads a topic leaves them out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg2.extras import Json, execute_values

from lockstep.control.database import control

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

    from lockstep.settings import Settings

Offsets = Mapping[int, tuple[int, ...]]
_COLUMNS = "number, subject, asked_by, approved_by, reason, asked_at, found, receipt, finished_at, key_destroyed_at"


@dataclass(frozen=True)
class Erasure:
    """One erasure.

    Args:
        subject: the token of who was erased; None: single records were.
        by: who has asked for it.
        approved_by: who has approved it; None: nobody was asked.
        found: what is to be done, found before anything was changed.
        receipt: what was proven at its end.
        key_destroyed_at: when the key of the subject's tokens was (UTC); None: it was not, or there was no subject.
    """

    number: int
    subject: str | None
    by: str
    approved_by: str | None
    reason: str
    asked_at: datetime
    found: Mapping[str, Any]
    receipt: Mapping[str, Any] | None = None
    finished_at: datetime | None = None
    key_destroyed_at: datetime | None = None


def begin(
    settings: "Settings",
    subject: str | None,
    by: str,
    reason: str,
    found: Mapping[str, Any],
    records: Mapping[str, Offsets],
    approved_by: str | None = None,
    above: int = 0,
) -> Erasure:
    """Record an erasure, with the offsets of the records by topic, all or nothing. From here on nobody takes them from Kafka.

    Args:
        above: its number is higher than this one. Of an older copy of the database, numbers of later erasures are in use already.
    """
    with control(settings) as connection:
        connection.autocommit = False
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO erasures (number, subject, asked_by, approved_by, reason, found) OVERRIDING SYSTEM VALUE "  # noqa: S608
                "VALUES ((SELECT greatest(max(number), %s) + 1 FROM erasures), %s, %s, %s, %s, %s) "
                f"RETURNING {_COLUMNS}",
                (above, subject, by, approved_by, reason, Json(dict(found))),
            )
            (opened,) = cursor.fetchall()
            _leave_out(cursor, opened[0], records)
    return _erasure(*opened)


def take_over(settings: "Settings", receipts: Collection[Mapping[str, Any]], records: Mapping[str, Offsets]) -> None:
    """Record erasures of which the receipts are left, and the offsets that they erased, by topic, all or nothing."""
    rows = [
        (
            *(kept[name] for name in ("erasure", "subject", "by", "approved_by", "reason", "asked_at")),
            Json({"tokens": [], "streams": {name: {} for name in kept["records"]}, "views": {}, "days": []}),
            Json(dict(kept)),
            kept["subject"],
        )
        for kept in receipts
    ]
    with control(settings) as connection:
        connection.autocommit = False
        with connection, connection.cursor() as cursor:
            execute_values(
                cursor,
                f"INSERT INTO erasures ({_COLUMNS}) OVERRIDING SYSTEM VALUE VALUES %s ON CONFLICT DO NOTHING",  # noqa: S608
                rows,
                "(%s, %s, %s, %s, %s, %s, %s, %s, now(), CASE WHEN %s IS NOT NULL THEN now() END)",
            )
            # Whose each of them is, nobody knows any more. See of_erasure.
            _leave_out(cursor, max(row[0] for row in rows), records)


def _leave_out(cursor: "Cursor", number: int, records: Mapping[str, Offsets]) -> None:
    rows = [(topic, p, o, number) for topic, of in records.items() for p, offsets in of.items() for o in offsets]
    if rows:
        execute_values(cursor, "INSERT INTO erased_offsets VALUES %s ON CONFLICT DO NOTHING", rows)


def every(settings: "Settings") -> list[Erasure]:
    """All erasures, the oldest first."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM erasures ORDER BY number")  # noqa: S608
        return [_erasure(*row) for row in cursor.fetchall()]


def finish(settings: "Settings", number: int, receipt: Mapping[str, Any]) -> None:
    """Record the receipt of an erasure, whose end is that of the first one."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE erasures SET receipt = %s, finished_at = coalesce(finished_at, now()) WHERE number = %s",
            (Json(dict(receipt)), number),
        )


def of_topics(settings: "Settings", topics: Iterable[str]) -> dict[str, Offsets]:
    """By topic and partition, the offsets of all records that were ever erased; topics without any are left out.

    An environment reads production's topics.
    """
    return _offsets(settings, "topic = ANY(%s)", [*topics])


def of_topic(settings: "Settings", topic: str) -> Offsets:
    """The same of one topic."""
    return of_topics(settings, [topic]).get(topic, {})


def of_erasure(settings: "Settings", number: int, topic: str) -> Offsets:
    """By partition of a topic, the offsets that one erasure, or an earlier one, has erased."""
    return _offsets(settings, "erasure <= %s AND topic = %s", number, topic).get(topic, {})


def _offsets(settings: "Settings", where: str, *values: object) -> dict[str, Offsets]:
    with control(settings.production) as connection, connection.cursor() as cursor:
        cursor.execute(
            f'SELECT topic, partition, "offset" FROM erased_offsets WHERE {where}',  # noqa: S608
            values,
        )
        found = defaultdict[str, list[tuple[int, int]]](list)
        for topic, *position in cursor.fetchall():
            found[topic].append((*position,))
    return {topic: offsets_of(of) for topic, of in found.items()}


def refuse_before(settings: "Settings", number: int, versions: Mapping[str, int]) -> None:
    """Record, by table, the version before which nobody may read it."""
    rows = [(table, version, number) for table, version in versions.items()]
    if not rows:
        return
    with control(settings) as connection, connection.cursor() as cursor:
        execute_values(
            cursor,
            "INSERT INTO erased_versions VALUES %s ON CONFLICT (table_name) DO UPDATE SET version = excluded.version, "
            "erasure = excluded.erasure WHERE erased_versions.version < excluded.version",
            rows,
        )


def first_version(settings: "Settings", table: str) -> int:
    """The version before which a table may not be read, because something in it was erased; 0: all may."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT version FROM erased_versions WHERE table_name = %s", (table,))
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _erasure(
    number: int,
    subject: str | None,
    by: str,
    approved_by: str | None,
    reason: str,
    asked_at: datetime,
    found: Mapping[str, Any],
    receipt: Mapping[str, Any] | None,
    finished_at: datetime | None,
    key_destroyed_at: datetime | None,
) -> Erasure:
    finished, destroyed = (at.astimezone(UTC) if at else None for at in (finished_at, key_destroyed_at))
    return Erasure(
        number, subject, by, approved_by, reason, asked_at.astimezone(UTC), found, receipt, finished, destroyed
    )


def offsets_of(rows: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """Pairs of partition and offset, by partition. Pure."""
    found = defaultdict[int, list[int]](list)
    for partition, offset in sorted(rows):
        found[partition].append(offset)
    return {partition: tuple(of) for partition, of in found.items()}
