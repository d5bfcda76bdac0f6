"""The keys of persons: a random one for each subject, with which the tokens of the person's values are made.

Whoever has no key can compute no token of the person, from whatever value; so an erasure destroys it. A subject is known here by
its own token, under the platform's key, and never by its value. Whoever needs a key asks for it, and does not keep it: a process
that goes on would go on with a key that was destroyed.

All are in production's database. An environment reads production's records, and makes the same tokens of them.
"""

import math
import secrets
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.control.database import control
from lockstep.control.written_anew import write_anew

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# Bytes: the size of SHA-256.
_SIZE = 32
_TABLE = ("public", "subject_keys")
_SELECT = "SELECT subject, key FROM subject_keys WHERE subject = ANY(%s)"
# Who comes second takes the key of who came first.
_INSERT = "INSERT INTO subject_keys (subject, key) VALUES %s ON CONFLICT DO NOTHING"
_DESTROY = """
WITH destroyed AS (DELETE FROM subject_keys WHERE subject = %(subject)s RETURNING subject)
UPDATE erasures SET key_destroyed_at = now()
WHERE subject = %(subject)s AND (key_destroyed_at IS NULL OR EXISTS (SELECT FROM destroyed))
"""
_DESTROY_OLDER = """
DELETE FROM subject_keys USING (VALUES %s) erased (subject, at)
WHERE subject_keys.subject = erased.subject AND made_at < at
"""


def existing(connection: "Connection", subjects: Iterable[str]) -> dict[str, bytes]:
    """The keys of those subjects that have one, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT, ([*subjects],))
        return {subject: bytes(key) for subject, key in cursor.fetchall()}


def ensure(connection: "Connection", subjects: Collection[str]) -> dict[str, bytes]:
    """The keys of all these subjects. Those that have none get one, and all who ask at the same time get the same.

    Args:
        connection: in autocommit: others must see at once what was made.
    """
    found = existing(connection, subjects)
    while missing := {*subjects} - found.keys():
        # In one order: two that insert the same keys in different orders would wait for each other.
        rows = [(subject, secrets.token_bytes(_SIZE)) for subject in sorted(missing)]
        with connection.cursor() as cursor:
            execute_values(cursor, _INSERT, rows, page_size=len(rows))
        found |= existing(connection, missing)
    return found


def of(settings: "Settings", subjects: Collection[str]) -> dict[str, bytes]:
    """As :func:`existing`, for who has no connection."""
    if not subjects:
        return {}
    with control(settings.production) as connection:
        return existing(connection, subjects)


def destroy(settings: "Settings", subject: str) -> None:
    """Destroy the key of a subject, if it has one, and note when with its erasures. After a kill, it does what is left."""
    with control(settings.production) as connection, connection.cursor() as cursor:
        cursor.execute(_DESTROY, {"subject": subject})
        write_anew(cursor, [_TABLE])


def destroy_older(settings: "Settings", than: Mapping[str, datetime]) -> int:
    """Destroy each key that is older than its time (UTC): a copy of the database has brought it back. Return how many."""
    if not than:
        return 0
    with control(settings.production) as connection, connection.cursor() as cursor:
        execute_values(cursor, _DESTROY_OLDER, [*than.items()], page_size=len(than))
        destroyed = int(cursor.rowcount)
        if destroyed:
            # To the end: the next call finds no key that it could destroy, and would leave these in the file.
            write_anew(cursor, [_TABLE], wait_seconds=math.inf)
    return destroyed
