"""The control database of an environment, beside production's on the same server. An environment is there if its database is."""

from typing import TYPE_CHECKING

from psycopg2 import sql
from psycopg2.errors import DuplicateDatabase, InsufficientPrivilege

from lockstep.control import schema
from lockstep.control.database import ControlUnavailable, control
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings


class ServerUnavailable(LockstepError):
    """Production's servers cannot be reached."""


class DatabaseRefused(LockstepError):
    """PostgreSQL does not let the account create a database."""


def exists(settings: "Settings") -> bool:
    """Whether the environment has a control database.

    Raises:
        ServerUnavailable: production's does not answer.
    """
    try:
        with control(settings.production) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", (settings.control_database,))
            return cursor.rowcount > 0
    except ControlUnavailable as error:
        raise ServerUnavailable(
            f"{error} Or correct LOCKSTEP_HOME and the other settings, which an environment shares with production."
        ) from error


def create(settings: "Settings") -> None:
    """Create the environment's control database if it is missing, and bring its tables to this release.

    Raises:
        DatabaseRefused: the account may not.
    """
    name = settings.control_database
    if not exists(settings):
        with control(settings.production) as connection, connection.cursor() as cursor:
            try:
                cursor.execute(sql.SQL("CREATE DATABASE {} STRATEGY wal_log").format(sql.Identifier(name)))
            except DuplicateDatabase:
                # Another command has just made it.
                pass
            except InsufficientPrivilege as error:
                raise DatabaseRefused(
                    f"The account {settings.postgres_user} may not create the database {name} at {settings.postgres_host}:"
                    f"{settings.postgres_port}: give it the right with `ALTER ROLE {settings.postgres_user} CREATEDB`."
                ) from error
    schema.apply(settings)


def drop(settings: "Settings") -> None:
    """Remove the environment's control database if it is there. Whoever is connected to it loses the connection."""
    name = sql.Identifier(settings.control_database)
    with control(settings.production) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
