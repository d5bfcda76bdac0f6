"""Blank a person out of what the platform notes about its own work: the tables ``ops.*``, its databases, logs and pages.

Rows stay, because the platform decides by some of them; of their texts, the values go: as words, as the
scanner finds them.
"""

import re
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import psycopg2
from psycopg2 import sql
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.control.leases import lease
from lockstep.control.written_anew import write_anew
from lockstep.erase import purge
from lockstep.erase.database import connection_to
from lockstep.erase.needles import in_bytes, in_text
from lockstep.erase.streams import record, run_id, txn

if TYPE_CHECKING:
    from pathlib import Path

    from psycopg2.extensions import cursor as Cursor
    from pyspark.sql import SparkSession

    from lockstep.control.erased import Erasure
    from lockstep.erase.scan import Hit
    from lockstep.settings import Settings

# Of the home, what is text, and nobody computes from.
_TEXTS = ("airflow/logs/", "logs/", "data_docs/", "dbt_docs/", "dbt/")
# What the erasure itself must keep, what has no text of anybody, and what goes on from its rows: an entity whose name was blanked
# would begin anew with its next event, and a rebuild would bring the name back from the log, which the receipt names too.
_OWN_TABLES = ("erasures", "erased_offsets", "erased_versions", "subject_keys", "alembic_version", "read_entities")
_TEXT_KINDS = ("text", "json", "jsonb", "character varying")
# Whether a column is in a unique index, where two values of a person must not become one. To wait for the failure would not do:
# PostgreSQL logs a statement that fails, with the values.
_IS_KEY = (
    "EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
    "WHERE i.indisunique AND a.attname = c.column_name "
    "AND i.indrelid = (quote_ident(c.table_schema) || '.' || quote_ident(c.table_name))::regclass)"
)
# Random, and not counted: an erasure that is tried again does not know what it has written before.
_BLANK_OF_A_KEY = "rtrim(%(blank)s, ']') || ' ' || substr(md5(random()::text), 1, 12) || ']'"


def ops_tables(
    spark: "SparkSession", settings: "Settings", erasure: "Erasure", values: "Iterable[str]", tables: "Iterable[str]"
) -> dict[str, int]:
    """Blank the values in tables of bookkeeping, and remove their old versions; by table, the first version that is left."""
    words = [*values]
    # Nothing can be blanked of records that cannot be parsed; a pattern without a word would match everything.
    return {table: _ops_table(spark, settings, erasure, words, table) for table in tables if words}


def _ops_table(spark: "SparkSession", settings: "Settings", erasure: "Erasure", values: list[str], table: str) -> int:
    pattern = "|".join(map(in_text, values))
    with lease(settings, table, run_id(erasure)):
        rows = lake.read(spark, settings, table)
        texts = [name for name, kind in rows.dtypes if kind == "string"]
        matches = reduce(or_, (F.coalesce(F.col(name).rlike(pattern), F.lit(False)) for name in texts), F.lit(False))
        if not rows.where(matches).isEmpty():
            new = {name: F.regexp_replace(name, pattern, _blank(erasure)).alias(name) for name in texts}
            blanked = rows.select(*(new.get(name, F.col(name)) for name in rows.columns))
            lake.replace(blanked, settings, table, "true", txn(table, erasure), record(erasure))
        return purge.purge(settings, table)


def tables_with_hits(settings: "Settings", hits: "Iterable[Hit]") -> list[str]:
    """The tables of bookkeeping in which the scanner has found something."""
    with_hits = {".".join(hit.where.split("/")[:2]) for hit in hits if hit.place == "lake"}
    return sorted(with_hits & {*lake.tables(settings, ["ops"])})


def databases(settings: "Settings", erasure: "Erasure", values: list[str]) -> None:
    """Blank the values in all texts of the control database, and of Airflow's, and write their tables anew."""
    if not values:
        return
    pattern = "|".join(map(in_text, values))
    for database in (settings.control_database, "airflow"):
        _database(settings, database, pattern, _blank(erasure))


def _database(settings: "Settings", database: str, pattern: str, blank: str) -> None:
    connection = connection_to(settings, database)
    if connection is None:
        return
    with closing(connection), connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(
            f"SELECT c.table_schema, c.table_name, c.column_name, c.data_type, {_IS_KEY} FROM information_schema.columns c "  # noqa: S608
            "JOIN information_schema.tables t USING (table_schema, table_name) WHERE t.table_type = 'BASE TABLE' "
            "AND c.table_schema NOT IN ('pg_catalog', 'information_schema') AND c.is_generated = 'NEVER' "
            "AND c.data_type = ANY(%s) AND c.table_name <> ALL(%s)",
            ([*_TEXT_KINDS], [*_OWN_TABLES]),
        )
        changed = set()
        for schema, table, column, kind, is_key in cursor.fetchall():
            statement = sql.SQL(
                "UPDATE {t} SET {c} = regexp_replace({c}::text, %(pattern)s, {blank}, 'g')::{kind} "
                "WHERE {c}::text ~ %(pattern)s"
            ).format(
                t=sql.Identifier(schema, table),
                c=sql.Identifier(column),
                kind=sql.SQL(kind),
                blank=sql.SQL(_BLANK_OF_A_KEY if is_key else "%(blank)s"),
            )
            # A number of JSON cannot become a text: it stays, and the scanner names it.
            with suppress(psycopg2.DataError):
                cursor.execute(statement, {"pattern": pattern, "blank": blank})
                if cursor.rowcount or _was_blanked(cursor, schema, table, column, blank):
                    changed.add((schema, table))
        write_anew(cursor, sorted(changed))


def _was_blanked(cursor: "Cursor", schema: str, table: str, column: str, blank: str) -> bool:
    """Whether this erasure has blanked something there before, and may have died before the table was written anew."""
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE strpos({}::text, %s) > 0)").format(
        sql.Identifier(schema, table), sql.Identifier(column)
    )
    # In a unique index, more follows it.
    cursor.execute(query, (blank.rstrip("]"),))
    return cursor.fetchone() == (True,)


def texts(settings: "Settings", values: "Iterable[str]", hits: "Iterable[Hit]") -> None:
    """Blank the values in logs and pages in which the scanner has found something, each in its place: servers append to them."""
    files = {hit.where for hit in hits if hit.place == "home" and hit.where.startswith(_TEXTS)}
    patterns = [re.compile(in_bytes(value).encode("latin-1")) for value in values]
    for file in sorted(files):
        _blank_in_place(settings.home / file, patterns)


def _blank_in_place(file: "Path", patterns: list[re.Pattern[bytes]]) -> None:
    data = file.read_bytes()
    with file.open("r+b") as open_file:
        for found in (match for pattern in patterns for match in pattern.finditer(data)):
            open_file.seek(found.start())
            open_file.write(b"*" * (found.end() - found.start()))


def _blank(erasure: "Erasure") -> str:
    """What is written in the place of a value: its own for each erasure."""
    return f"[erased {erasure.number}]"
