"""The records of the ``ops.*`` tables: the newest one of each key, as a compacted topic keeps it.

What the platform decides by, such as the positions of the gates and the versions that readers see, is read here. The Delta tables
have all rows and records for readers, but Delta removes old commits from a log, with the records in them.

An environment keeps here what it knows of itself, under ``environment/<name>``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg2.extras import Json, execute_values

from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Record:
    """One record of a table.

    Args:
        key: what it is about; a record replaces the older one of its key.
        seq: its number: it rises by one with every commit of the table.
        fields: what the writer has recorded.
        written_at: UTC.
    """

    key: str
    seq: int
    fields: Mapping[str, Any]
    written_at: datetime


def of_each_key(settings: "Settings", table: str) -> list[Record]:
    """The newest record of each key of ``ops.<name>``, in the order in which they were written."""
    return _select(settings, "WHERE table_name = %s ORDER BY seq", table)


def of_key(settings: "Settings", table: str, key: str) -> Record | None:
    """The newest record of a key; None: it has none."""
    return next(iter(_select(settings, "WHERE table_name = %s AND key = %s", table, key)), None)


def newest(settings: "Settings", table: str) -> Record | None:
    """The record that was written last, of any key; None: there is none."""
    return next(iter(_select(settings, "WHERE table_name = %s ORDER BY seq DESC LIMIT 1", table)), None)


def put(settings: "Settings", table: str, records: Iterable[Record]) -> int:
    """Write the records, each with a key of its own, all or none. One that is older than what its key has changes nothing.

    Returns:
        How many are there now.
    """
    rows = [(table, r.key, r.seq, Json(dict(r.fields)), r.written_at) for r in records]
    with control(settings) as connection, connection.cursor() as cursor:
        execute_values(
            cursor,
            "INSERT INTO ops_records (table_name, key, seq, record, written_at) VALUES %s "
            "ON CONFLICT (table_name, key) DO UPDATE SET seq = excluded.seq, record = excluded.record, "
            "written_at = excluded.written_at WHERE ops_records.seq < excluded.seq "
            "OR (ops_records.seq, ops_records.record) = (excluded.seq, excluded.record)",
            rows,
            page_size=max(len(rows), 1),
        )
        return int(cursor.rowcount)


def _select(settings: "Settings", where: str, *values: str) -> list[Record]:
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT key, seq, record, written_at FROM ops_records {where}", values)  # noqa: S608
        return [Record(key, seq, fields, at.astimezone(UTC)) for key, seq, fields, at in cursor.fetchall()]
