"""The databases of the platform in which a person may be named."""

from typing import TYPE_CHECKING

import psycopg2

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# A row or a table that somebody else has locked is an error after this time, and not a task that waits for ever.
_LIMITS = "-c lock_timeout=60s"


def connection_to(settings: "Settings", database: str) -> "Connection | None":
    """A connection to a database of the platform; None: there is none of that name. The caller closes it.

    Raises:
        psycopg2.OperationalError: PostgreSQL cannot be reached.
    """
    try:
        return psycopg2.connect(
            settings.dsn(database), application_name="lockstep:erase", connect_timeout=10, options=_LIMITS
        )
    except psycopg2.OperationalError as error:
        if "does not exist" in str(error):
            return None
        raise
