"""A source database: which one it is, and what its captured tables tell of their old rows."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg2

from lockstep.settings import Settings
from lockstep.stack import postgres
from lockstep.stack.errors import Unhealthy


def source_now(settings: Settings, database: str) -> tuple[str, int]:
    """Which database it is (``system identifier/timeline``), and its newest LSN.

    Another server has another identifier. A server that was promoted, or restored up to some instant, has another timeline.

    Raises:
        Unhealthy: it does not answer.
    """
    ((identity, lsn),) = _rows(
        settings,
        database,
        "SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), "
        "(pg_current_wal_insert_lsn() - '0/0')::bigint FROM pg_control_system()",
    )
    return identity, lsn


def without_old_rows(settings: Settings, database: str, tables: Iterable[str]) -> list[str]:
    """Those of the tables (``schema.name``), and of their partitions, without ``REPLICA IDENTITY FULL``: as SQL has their names.

    Their changes do not have the row as it was before. Debezium invents values for the columns of a deleted row that are NOT
    NULL: empty texts, zeros, and the year 1970.

    Raises:
        Unhealthy: the database does not answer.
    """
    found = _rows(
        settings,
        database,
        "SELECT DISTINCT format('%%s.%%I', p.relnamespace::regnamespace, p.relname) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_class p ON p.oid = c.oid OR p.oid IN (SELECT relid FROM pg_partition_tree(c.oid)) "
        "WHERE n.nspname || '.' || c.relname = ANY(%s) AND p.relkind = 'r' AND p.relreplident <> 'f' ORDER BY 1",
        [*tables],
    )
    return [name for (name,) in found]


def ask_for_snapshot(settings: Settings, database: str, tables: Iterable[str]) -> None:
    """Have Debezium read the rows of these tables (``schema.name``), when it comes to this place in the log.

    It stops to read the log meanwhile, so that a row and its changes come in their order.

    Raises:
        Unhealthy: the database does not answer.
    """
    asked = json.dumps({"type": "BLOCKING", "data-collections": [table.replace(".", r"\.") for table in tables]})
    request = str(uuid.uuid4())
    statement = "INSERT INTO public.debezium_signal VALUES (%s, 'execute-snapshot', %s) RETURNING id"
    _rows(settings, database, statement, request, asked)
    # Debezium reads it in the log, so the table stays empty.
    _rows(settings, database, "DELETE FROM public.debezium_signal WHERE id = %s RETURNING id", request)


@dataclass(frozen=True)
class SourceTable:
    """A table of the source database, as change capture sees it.

    Args:
        key: the columns of its primary key, sorted.
        columns: all of its columns.
        has_old_rows: it has ``REPLICA IDENTITY FULL``; of a partitioned one, each partition has.
        is_published: the publication has it.
        is_readable: the platform's user may read it.
        is_partitioned: its rows are in partitions.
    """

    key: tuple[str, ...]
    columns: frozenset[str]
    has_old_rows: bool
    is_published: bool
    is_readable: bool
    is_partitioned: bool = False


@dataclass(frozen=True)
class SourceServer:
    """The server of a source database, as change capture sees it.

    Args:
        wal_level: how much its log has.
        user: the platform's.
        may_replicate: this user may read the log.
    """

    wal_level: str
    user: str
    may_replicate: bool


def look_at_server(settings: Settings, database: str) -> SourceServer:
    """What the server allows.

    Raises:
        Unhealthy: it does not answer.
    """
    # On Amazon RDS, a role stands for the attribute, which nobody gets there.
    ((level, user, may),) = _rows(
        settings,
        database,
        "SELECT current_setting('wal_level'), u.rolname::text, u.rolreplication OR u.rolsuper OR EXISTS "
        "(SELECT FROM pg_roles r WHERE r.rolname = 'rds_replication' AND pg_has_role(u.oid, r.oid, 'USAGE')) "
        "FROM pg_roles u WHERE u.rolname = current_user",
    )
    return SourceServer(level, user, may)


def look_at(settings: Settings, database: str, tables: Iterable[str]) -> dict[str, SourceTable]:
    """Those of the tables (``schema.name``) that exist, by name.

    Raises:
        Unhealthy: the database does not answer.
    """
    found = _rows(
        settings,
        database,
        """
        SELECT n.nspname || '.' || c.relname,
          (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_index i JOIN pg_attribute a
             ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary),
          (SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
          NOT EXISTS (SELECT FROM pg_class p WHERE p.relkind = 'r' AND p.relreplident <> 'f'
                      AND (p.oid = c.oid OR p.oid IN (SELECT relid FROM pg_partition_tree(c.oid)))),
          EXISTS (SELECT FROM pg_publication_tables p
                  WHERE p.pubname = 'lockstep' AND p.schemaname = n.nspname AND p.tablename = c.relname),
          has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
          c.relkind = 'p'
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname || '.' || c.relname = ANY(%s) AND c.relkind IN ('r', 'p')
        """,
        [*tables],
    )
    return {
        name: SourceTable(tuple(key or ()), frozenset(columns), old, published, readable, partitioned)
        for name, key, columns, old, published, readable, partitioned in found
    }


def has_slot(settings: Settings, database: str, slot: str) -> bool:
    """Whether the source has a replication slot, and all of the log that it stands for.

    PostgreSQL gives up the log of a slot that is too far behind (``max_slot_wal_keep_size``) or that nobody has used for long.

    Raises:
        Unhealthy: the database does not answer.
    """
    usable = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND wal_status IS DISTINCT FROM 'lost'"
    return bool(_rows(settings, database, usable, slot))


def drop_slot(settings: Settings, database: str, slot: str) -> bool:
    """Drop a replication slot; whether it is gone. A slot that is in use stays.

    Raises:
        Unhealthy: the database does not answer.
    """
    drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
    _rows(settings, database, drop, slot)
    return not _rows(settings, database, "SELECT FROM pg_replication_slots WHERE slot_name = %s", slot)


def _rows(settings: Settings, database: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
    try:
        with postgres.connected(settings, database) as connection, connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchall()
    except psycopg2.Error as error:
        raise Unhealthy(f"the source database {database} does not answer: {error}".strip()) from error
