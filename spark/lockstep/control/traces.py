"""What the control database knows of tables and of views: counted, and forgotten when they are removed for ever.

The newest records of the ``ops.*`` tables are not among it: see :mod:`lockstep.ledger.ops_table`. Nor are the intervals that
replays and backfills hold: who holds one still needs it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lockstep.control.database import control

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

    from lockstep.settings import Settings

# By table of the database, the condition for the rows of some tables of the lake.
OF_TABLES = {"ledger_heads": "table_name = ANY(%s)", "log_digests": "table_name = ANY(%s)"}
# And for the rows of a view. A direct sink is named ``<view>.<receiver>``, and no view's name has a dot.
OF_VIEW = {
    "live_generations": "query = %s",
    "live_definitions": "query = %s",
    "delivery_attempts": "sink = %s",
    "delivery_outbox": "split_part(sink, '.', 1) = %s",
    "checkpoint_files": "job = %s",
}


def rows_of_tables(settings: "Settings", tables: Iterable[str]) -> int:
    """How many rows the database has of these tables of the lake."""
    with control(settings) as connection, connection.cursor() as cursor:
        return sum(_count(cursor, name, where, [*tables]) for name, where in OF_TABLES.items())


def rows_of_view(settings: "Settings", view: str) -> int:
    """How many rows the database has of this view, its live query and its sinks."""
    with control(settings) as connection, connection.cursor() as cursor:
        return sum(_count(cursor, name, where, view) for name, where in OF_VIEW.items())


def forget_tables(settings: "Settings", tables: Sequence[str]) -> None:
    """Delete the rows of tables that are about to be removed, all or none."""
    _delete(settings, OF_TABLES, [*tables])


def forget_view(settings: "Settings", view: str) -> None:
    """Delete the rows of a view whose tables and checkpoints are gone, all or none: the next view of this name is a new one."""
    _delete(settings, OF_VIEW, view)


def _count(cursor: "Cursor", name: str, where: str, value: object) -> int:
    # Names and conditions are those above.
    cursor.execute(f"SELECT count(*) FROM {name} WHERE {where}", (value,))  # noqa: S608
    ((count,),) = cursor.fetchall()
    return int(count)


def _delete(settings: "Settings", conditions: dict[str, str], value: object) -> None:
    with control(settings) as connection:
        connection.autocommit = False
        with connection, connection.cursor() as cursor:
            for name, where in conditions.items():
                cursor.execute(f"DELETE FROM {name} WHERE {where}", (value,))  # noqa: S608
