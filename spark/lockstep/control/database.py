"""Connections to the control database."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import psycopg2

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings


@contextmanager
def control(settings: "Settings") -> "Iterator[Connection]":
    """A connection to the control database, in autocommit."""
    with closing(psycopg2.connect(settings.dsn("lockstep"), application_name="lockstep")) as connection:
        connection.autocommit = True
        yield connection
