"""The rows of a captured table as its source database has them, in one snapshot of PostgreSQL.

The snapshot also says which transactions it sees, so that silver's changes of the others can be left out: the rows of the two are
then of the very same moment, however busy the database is.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow as pa
from psycopg2 import sql
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.errors import LockstepError
from lockstep.refine.tokens import token

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# Rows that are fetched, and turned into Arrow, at a time: some megabytes.
_FETCHED = 50_000
_WAIT_SECONDS = 0.5
# How a column is read, by its type in the contract. As STRING, Debezium sends the value as text, and its own words for what no
# number is. Times beyond those of the calendar are in quarantine.
_IN_CALENDAR = "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999' THEN {0} END"
_READ_AS = {
    "STRING": """
CASE WHEN pg_typeof({0}) = 'numeric'::regtype THEN
  CASE {0}::text WHEN 'NaN' THEN 'NAN' WHEN 'Infinity' THEN 'POSITIVE_INFINITY' WHEN '-Infinity' THEN 'NEGATIVE_INFINITY'
  ELSE {0}::text END
ELSE {0}::text END""",
    "DATE": _IN_CALENDAR,
    "TIMESTAMP": _IN_CALENDAR,
}
# Changes have PostgreSQL's transaction ids of 32 bits, and snapshots those of 64.
XIDS = 2**32


class NotCaptured(LockstepError):
    """The lake does not have all that the source database had committed."""


class SourceUnreadable(LockstepError):
    """The source database does not give the table's rows."""


@dataclass(frozen=True)
class Snapshot:
    """The rows of a table, and of which moment they are.

    Args:
        rows: with the columns of the contract; personal ones are tokens.
        lsn: what the snapshot sees was committed below this LSN.
        at: when it was taken (UTC), by the clock of the database.
        begins: transactions from this id on had not begun.
        running: those before it that had not ended. Both are of 32 bits.
    """

    rows: pa.Table
    lsn: int
    at: datetime
    begins: int
    running: frozenset[int]


def table_of(settings: "Settings", contract: "Contract") -> tuple[str, str]:
    """The schema and the name of the captured table, which the name of the topic ends with."""
    schema, _, name = contract.topic.removeprefix(f"{settings.package}.").partition(".")
    return schema, name


def snapshot(settings: "Settings", contract: "Contract", schema: pa.Schema) -> Snapshot:
    """Read a captured table.

    Args:
        schema: the columns of the contract, as Spark has them.

    Raises:
        SourceUnreadable: the database does not answer, or the table has not all columns of the contract.
    """
    try:
        with closing(_connect(settings)) as database:
            database.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with database.cursor() as cursor:
                cursor.execute("SET TIME ZONE 'UTC'")
                # The functions run after the snapshot was taken: what it sees was committed before.
                cursor.execute(
                    "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn() - '0/0', clock_timestamp()"
                )
                seen, lsn, at = cursor.fetchone() or ("", 0, None)
            batches = [*_batches(database, table_of(settings, contract), contract, schema)]
    except psycopg2.Error as error:
        name = ".".join(table_of(settings, contract))
        raise SourceUnreadable(f"{settings.package}: the table {name} cannot be read: {error}".strip()) from error
    _, begins, running = seen.split(":")
    return Snapshot(
        rows=pa.Table.from_batches(batches, schema),
        lsn=int(lsn),
        at=at,
        begins=int(begins) % XIDS,
        running=frozenset(int(xid) % XIDS for xid in running.split(",") if xid),
    )


def await_capture(settings: "Settings", lsn: int, seconds: float) -> None:
    """Wait until Debezium has sent what was committed below an LSN.

    Raises:
        NotCaptured: it has not after that time. The message says how far it is.
        SourceUnreadable: the database does not answer, or has no slot of Debezium.
    """
    attempts = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(_WAIT_SECONDS), retry=retry_if_not_result(bool))
    try:
        attempts(lambda: captured_to(settings) >= lsn)
    except RetryError:
        raise NotCaptured(
            f"{settings.package}: Debezium has sent what was committed below LSN {captured_to(settings):,}, and not yet up to "
            f"{lsn:,}, after {seconds:g} s. See `lockstep status` for the service connect."
        ) from None


def captured_to(settings: "Settings") -> int:
    """The LSN up to which Debezium has sent what was committed.

    Raises:
        SourceUnreadable: the database does not answer, or has no slot of Debezium.
    """
    slots = (
        "SELECT max(confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE database = current_database()"
    )
    try:
        with closing(_connect(settings)) as database, database.cursor() as cursor:
            cursor.execute(slots)
            ((lsn,),) = cursor.fetchall()
    except psycopg2.Error as error:
        raise SourceUnreadable(f"The source database {settings.package} does not answer: {error}".strip()) from error
    if lsn is None:
        raise SourceUnreadable(
            f"The source database {settings.package} has no replication slot, so nothing captures it: `lockstep up connect`."
        )
    return int(lsn)


def _connect(settings: "Settings") -> "Connection":
    connection: Connection = psycopg2.connect(
        settings.dsn(settings.package), connect_timeout=10, application_name="lockstep"
    )
    return connection


def _batches(
    database: "Connection", table: tuple[str, str], contract: "Contract", schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    columns = (
        sql.SQL(_READ_AS.get(kind, "{0}")).format(sql.Identifier(name)) for name, kind in contract.columns.items()
    )
    query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(columns), sql.Identifier(*table))
    with database.cursor("lockstep_verify") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(query)
        while rows := cursor.fetchmany(_FETCHED):
            of_columns = zip(schema, zip(*rows, strict=True), strict=True)
            arrays = [_array(field, values, field.name in contract.pii) for field, values in of_columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(field: pa.Field, values: tuple[Any, ...], is_pii: bool) -> pa.Array:
    if is_pii:
        return pa.array([None if value is None else token(value) for value in values], field.type)
    if pa.types.is_floating(field.type):
        return pa.array([None if value is None else float(value) for value in values], field.type)
    return pa.array(values, field.type)
