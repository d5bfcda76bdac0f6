"""The rows of a captured table as its source database has them, in one snapshot of PostgreSQL.

The snapshot also says which transactions it sees, so that silver's changes of the others can be left out: the rows of the two are
then of the very same moment, however busy the database is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow as pa
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.contracts.captured import database_of, slot_of, table_of
from lockstep.control import subject_keys
from lockstep.errors import LockstepError
from lockstep.reconcile.source_query import BEYOND, select
from lockstep.refine.tokens import keys_of, of_person, tokens

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# Rows of a chunk: some megabytes.
CHUNK = 50_000
_WAIT_SECONDS = 0.5
# Changes have PostgreSQL's transaction ids of 32 bits, and snapshots those of 64.
XIDS = 2**32


class NotCaptured(LockstepError):
    """The lake does not have all that the source database had committed."""


class SourceUnreadable(LockstepError):
    """The source database does not give the table's rows."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table.

    Args:
        rows: with the columns of the contract, and :data:`BEYOND`. A column that the table does not have is null; personal ones
            are tokens.
        until: the key of the last row; None: there are no more rows.
    """

    rows: pa.Table
    until: tuple[Any, ...] | None


@dataclass(frozen=True)
class Snapshot:
    """The rows of a table, and of which moment they are.

    Args:
        id: PostgreSQL's name of the snapshot, for as long as the session lasts that has made it.
        lsn: what the snapshot sees was committed below this LSN.
        at: when it was taken (UTC), by the clock of the database.
        begins: transactions from this id on had not begun.
        running: those before it that had not ended. Both are of 32 bits.
    """

    settings: "Settings"
    contract: "Contract"
    schema: pa.Schema
    id: str
    lsn: int
    at: datetime
    begins: int
    running: frozenset[int]

    def chunks(self) -> Iterator[Chunk]:
        """The rows in the order of their key, :data:`CHUNK` at a time; only the last chunk has fewer, and may have none.

        Rows whose key is personal come in one chunk, because tokens have another order.

        Raises:
            SourceUnreadable: the database does not give them.
        """
        source, table = database_of(self.settings, self.contract), table_of(self.settings, self.contract)
        size = None if {*self.contract.unique_id} & {*self.contract.pii} else CHUNK
        schema = self.schema.append(pa.field(BEYOND, pa.list_(pa.string())))
        with _reading(self.settings, self.contract), closing(_connect(self.settings, source)) as session:
            session.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with session.cursor() as cursor:
                cursor.execute("SET TRANSACTION SNAPSHOT %s", (self.id,))
                cursor.execute("SET TIME ZONE 'UTC'")
                there = _columns(cursor, table)
            if not {*self.contract.unique_id} <= there:
                raise SourceUnreadable(f"{source}: the table {'.'.join(table)} {_lacks_key(self.contract, there)}.")
            # A session's cursor that is no named one would have all rows in memory.
            with session.cursor("lockstep_verify") as cursor:
                cursor.execute(select(table, self.schema, self.contract.unique_id, there))
                while True:
                    rows = cursor.fetchmany(size) if size else cursor.fetchall()
                    is_last = size is None or len(rows) < size
                    yield _chunk(self.settings, rows, schema, self.contract, is_last=is_last)
                    if is_last:
                        return


@contextmanager
def snapshot(settings: "Settings", contract: "Contract", schema: pa.Schema) -> Iterator[Snapshot]:
    """Take a snapshot of the source database, which lasts until the block ends. It locks no table.

    Args:
        schema: the columns of the contract, as Spark has them.

    Raises:
        SourceUnreadable: the database does not answer.
    """
    with _reading(settings, contract):
        database = _connect(settings, database_of(settings, contract))
    with closing(database):
        with _reading(settings, contract), database.cursor() as cursor:
            database.set_session(isolation_level="REPEATABLE READ", readonly=True)
            # The other functions run after the snapshot was taken: what it sees was committed before.
            cursor.execute(
                "SELECT pg_export_snapshot(), pg_current_snapshot()::text, pg_current_wal_insert_lsn() - '0/0', clock_timestamp()"
            )
            ((name, seen, lsn, at),) = cursor.fetchall()
        _, begins, running = seen.split(":")
        yield Snapshot(
            settings,
            contract,
            schema,
            id=name,
            lsn=int(lsn),
            at=at,
            begins=int(begins) % XIDS,
            running=frozenset(int(xid) % XIDS for xid in running.split(",") if xid),
        )


@contextmanager
def _reading(settings: "Settings", contract: "Contract") -> Iterator[None]:
    try:
        yield
    except psycopg2.Error as error:
        database, name = database_of(settings, contract), ".".join(table_of(settings, contract))
        raise SourceUnreadable(f"{database}: the table {name} cannot be read: {error}".strip()) from error


def await_capture(settings: "Settings", database: str, lsn: int, seconds: float) -> None:
    """Wait until Debezium has sent what was committed below an LSN. When it reads the tables anew, it has no slot for a while.

    Raises:
        NotCaptured: it has not after that time. The message says how far it is.
        SourceUnreadable: the database does not answer, or has no slot of Debezium after that time.
    """
    attempts = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(_WAIT_SECONDS), retry=retry_if_not_result(bool))
    try:
        attempts(lambda: (captured_to(settings, database) or 0) >= lsn)
    except RetryError:
        reached = captured_to(settings, database)
        if reached is None:
            raise SourceUnreadable(
                f"The source database {database} has no replication slot, so nothing captures it: `lockstep up connect`."
            ) from None
        raise NotCaptured(
            f"{database}: Debezium has sent what was committed below LSN {reached:,}, and not yet up to "
            f"{lsn:,}, after {seconds:g} s. See `lockstep status` for the service connect."
        ) from None


def captured_to(settings: "Settings", database: str) -> int | None:
    """The LSN up to which Debezium has sent what was committed; None: the database has no slot of Debezium.

    Other programs may have slots of their own in the database, and be further.

    Raises:
        SourceUnreadable: the database does not answer.
    """
    sent = "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE slot_name = %s"
    with _asking(settings, database) as cursor:
        cursor.execute(sent, (slot_of(settings, database),))
        found = [int(lsn) for (lsn,) in cursor.fetchall() if lsn is not None]
    return found[0] if found else None


def _connect(settings: "Settings", database: str) -> "Connection":
    connection: Connection = psycopg2.connect(settings.dsn(database), connect_timeout=10, application_name="lockstep")
    return connection


def columns_of(settings: "Settings", database: str, tables: "Iterable[str]") -> dict[str, frozenset[str]]:
    """By table (``schema.name``) of a source database, its columns; none where there is no such table.

    Raises:
        SourceUnreadable: the database does not answer.
    """
    with _asking(settings, database) as cursor:
        return {table: _columns(cursor, (table.partition(".")[0], table.partition(".")[2])) for table in tables}


@contextmanager
def _asking(settings: "Settings", database: str) -> Iterator[Any]:
    try:
        with closing(_connect(settings, database)) as session, session.cursor() as cursor:
            yield cursor
    except psycopg2.Error as error:
        raise SourceUnreadable(f"The source database {database} does not answer: {error}".strip()) from error


def _columns(cursor: Any, table: tuple[str, str]) -> frozenset[str]:
    """The columns that the table has; none where there is no such table."""
    cursor.execute(
        "SELECT column_name::text FROM information_schema.columns WHERE (table_schema, table_name) = (%s, %s)", table
    )
    return frozenset(name for (name,) in cursor.fetchall())


def _lacks_key(contract: "Contract", there: frozenset[str]) -> str:
    lost = ", ".join(name for name in contract.unique_id if name not in there)
    return f"has no column {lost}, which is of the contract's unique_id" if there else "does not exist"


def _chunk(
    settings: "Settings", rows: list[tuple[Any, ...]], schema: pa.Schema, contract: "Contract", *, is_last: bool
) -> Chunk:
    columns = dict(zip(schema.names, [*zip(*rows, strict=True)] or [()] * len(schema), strict=True))
    columns |= _tokens(settings, contract, columns)
    table = pa.Table.from_arrays([_array(field, columns[field.name]) for field in schema], schema=schema)
    return Chunk(table, None if is_last else tuple(table[name][-1].as_py() for name in contract.unique_id))


def _tokens(
    settings: "Settings", contract: "Contract", columns: Mapping[str, Sequence[Any]]
) -> dict[str, Sequence[Any]]:
    """The personal columns as tokens. Who has no key gets none: silver has no row of such a person."""
    of_platform = [None] * len(columns[contract.unique_id[0]])
    names = of_person(contract)
    subjects = columns[contract.subject] if names else of_platform
    keys = keys_of(subjects, partial(subject_keys.of, settings))
    return {name: tokens(keys, subjects if name in names else of_platform, columns[name]) for name in contract.pii}


def _array(field: pa.Field, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_floating(field.type):
        return pa.array([None if value is None else float(value) for value in values], field.type)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SourceUnreadable(f"The values of {field.name} are none of the contract's type: {error}") from error
