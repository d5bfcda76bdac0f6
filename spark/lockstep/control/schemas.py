"""The schemas of a registry that the records of a topic were read with, for ever: what an id means never changes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.control.database import control
from lockstep.formats.confluent import Registered

if TYPE_CHECKING:
    from lockstep.settings import Settings

# By id; None: the registry had no such schema when it was asked.
Schemas = Mapping[int, Registered | None]


def kept(settings: "Settings", topic: str) -> dict[int, Registered | None]:
    """What is known of the ids in a topic."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, kind, schema, has_references FROM registered_schemas WHERE topic = %s", (topic,))
        return {
            number: Registered(kind, text, refers) if kind else None for number, kind, text, refers in cursor.fetchall()
        }


def keep(settings: "Settings", topic: str, schemas: Schemas) -> None:
    """Keep what the registry has answered. A schema that is known stays."""
    rows = [
        (topic, number, found and found.kind, found and found.text, bool(found and found.has_references))
        for number, found in schemas.items()
    ]
    if not rows:
        return
    with control(settings) as connection, connection.cursor() as cursor:
        execute_values(
            cursor,
            "INSERT INTO registered_schemas (topic, id, kind, schema, has_references) VALUES %s "
            "ON CONFLICT (topic, id) DO UPDATE SET kind = excluded.kind, "
            "schema = excluded.schema, has_references = excluded.has_references, asked_at = now() "
            "WHERE registered_schemas.kind IS NULL",
            rows,
        )
