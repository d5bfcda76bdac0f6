"""Connections to the control database."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2.errors import UndefinedColumn, UndefinedTable

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# A server that is gone, or does not answer, is an error after at most a minute, and not a task that waits for ever.
_LIMITS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "options": "-c statement_timeout=60s -c idle_in_transaction_session_timeout=60s",
}


class SchemaMissing(LockstepError):
    """The control database does not have the tables that this release needs."""


class ControlUnavailable(LockstepError, psycopg2.OperationalError):
    """The control database does not answer."""


def connect(settings: "Settings") -> "Connection":
    """A new connection to the control database, on which nothing waits for longer than a minute.

    Raises:
        ControlUnavailable: it does not answer, or refuses the account.
    """
    try:
        connection: Connection = psycopg2.connect(
            settings.dsn(settings.control_database), application_name="lockstep", **_LIMITS
        )
    except psycopg2.OperationalError as error:
        raise ControlUnavailable(
            f"PostgreSQL at {settings.postgres_host}:{settings.postgres_port} does not answer for the control database "
            f"{settings.control_database}: {str(error).strip()}. Start it with `lockstep up postgres`, or see its log."
        ) from error
    return connection


@contextmanager
def control(settings: "Settings") -> "Iterator[Connection]":
    """A connection to the control database, in autocommit.

    Raises:
        SchemaMissing: a statement of the block names a table or a column that the database does not have.
    """
    with closing(connect(settings)) as connection:
        connection.autocommit = True
        try:
            yield connection
        except (UndefinedTable, UndefinedColumn) as error:
            reason = str(error).partition("\n")[0]
            command = f"--env {settings.env} apply" if settings.env else "up postgres"
            raise SchemaMissing(
                f"The control database at {settings.postgres_host}:{settings.postgres_port} lacks tables: {reason}. Create them "
                f"with `lockstep {command}`; what other tables hold stays as it is."
            ) from error
