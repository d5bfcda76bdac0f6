"""Tables of PostgreSQL without the rows of before, which an UPDATE or a DELETE leaves in their files."""

from typing import TYPE_CHECKING

from psycopg2 import sql
from psycopg2.errors import LockNotAvailable
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg2.extensions import cursor as Cursor

# Who waits for a whole table makes all others wait who come later: so it waits for a short time, lets them pass, and comes again.
_TRY_MS, _PAUSE_SECONDS, _WAIT_SECONDS = 2000, 1, 60
# Who has the table (SQL), the oldest transaction first.
_HOLDERS = """
SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename, a.backend_type), a.state, a.xact_start
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.granted AND l.relation = %s::regclass AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND a.pid <> pg_backend_pid() ORDER BY a.xact_start
"""


class TableHeld(LockstepError):
    """Somebody had a table for too long, so it could not be written anew, and its files still have rows of before."""


def write_anew(cursor: "Cursor", tables: "Iterable[tuple[str, str]]", wait_seconds: float = _WAIT_SECONDS) -> None:
    """Write tables anew.

    Args:
        cursor: of a connection in autocommit.
        tables: by schema and name.

    Raises:
        TableHeld: somebody had one of them for the whole time; the message names who.
    """
    for schema, table in tables:
        name = sql.Identifier(schema, table)
        patient = Retrying(
            retry=retry_if_exception_type(LockNotAvailable),
            stop=stop_after_delay(wait_seconds),
            wait=wait_fixed(_PAUSE_SECONDS),
            reraise=True,
        )
        # Writing takes as long as the table is large.
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', '0', false)",
            (f"{_TRY_MS}ms",),
        )
        try:
            patient(cursor.execute, sql.SQL("VACUUM FULL {}").format(name))
        except LockNotAvailable:
            cursor.execute(_HOLDERS, (name.as_string(cursor),))
            held = [f"{who} (backend {pid}, {state}, since {since})" for pid, who, state, since in cursor.fetchall()]
            raise TableHeld(
                f"The table {schema}.{table} was not written anew in {wait_seconds:.0f} s, so its files still have what was "
                f"erased, because others have it: {', '.join(held) or 'who just left'}. Wait for them, or end one with "
                "`SELECT pg_terminate_backend(<backend>)`, and erase again."
            ) from None
        finally:
            cursor.execute("RESET lock_timeout; RESET statement_timeout")
