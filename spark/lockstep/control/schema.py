"""The tables of the control database: Alembic's migrations, applied each time that PostgreSQL is set up."""

from typing import TYPE_CHECKING

from lockstep.control.database import connect
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings


class SchemaNewer(LockstepError):
    """The tables of the control database are of a release that this one does not know."""


def apply(settings: "Settings") -> None:
    """Bring the tables to this release, in one transaction. What they hold stays; a second time nothing changes.

    Raises:
        SchemaNewer: a newer release has changed the tables.
    """
    # Imported here: they take a third of a second, and only the setup of PostgreSQL needs them.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", "lockstep.control:migrations")
    engine = create_engine("postgresql+psycopg2://", creator=lambda: connect(settings), poolclass=NullPool)
    with engine.begin() as connection:
        # One at a time: two could both find a migration missing.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended('control_schema', 0))")
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise SchemaNewer(
                f"The control database at {settings.postgres_host}:{settings.postgres_port} was changed by a newer release "
                f"({error}). Run that release."
            ) from error
