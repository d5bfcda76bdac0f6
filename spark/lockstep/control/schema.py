"""The tables of the control database: ``schema.sql``, applied each time that PostgreSQL is set up."""

from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.settings import Settings

_SCHEMA = Path(__file__).with_name("schema.sql")


def apply(settings: "Settings") -> None:
    """Create the tables that are missing, in one transaction."""
    with control(settings) as connection, connection.cursor() as cursor:
        # PostgreSQL runs the statements of one call as one transaction.
        cursor.execute(_SCHEMA.read_text())
