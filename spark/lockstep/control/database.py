"""Connections to the control database."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import psycopg2
from psycopg2.errors import UndefinedColumn, UndefinedTable

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings


class SchemaMissing(LockstepError):
    """The control database does not have the tables that this release needs."""


@contextmanager
def control(settings: "Settings") -> "Iterator[Connection]":
    """A connection to the control database, in autocommit.

    Raises:
        SchemaMissing: a statement of the block names a table or a column that the database does not have.
    """
    with closing(psycopg2.connect(settings.dsn("lockstep"), application_name="lockstep")) as connection:
        connection.autocommit = True
        try:
            yield connection
        except (UndefinedTable, UndefinedColumn) as error:
            reason = str(error).partition("\n")[0]
            raise SchemaMissing(
                f"The control database at {settings.postgres_host}:{settings.postgres_port} lacks tables: {reason}. Create them "
                "with `lockstep up postgres`; what other tables hold stays as it is."
            ) from error
