"""The definition with which each generation of a live view last started, in the control database."""

from typing import TYPE_CHECKING

from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.live.generation import Generation
    from lockstep.settings import Settings


def last_definition(settings: "Settings", generation: "Generation") -> str | None:
    """The fingerprint of the definition with which the generation last started; None before its first start."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT fingerprint FROM live_definitions WHERE query = %s AND generation = %s",
            (generation.query, generation.number),
        )
        row = cursor.fetchone()
    return row[0] if row else None


def record_definition(settings: "Settings", generation: "Generation", fingerprint: str) -> None:
    """Record the definition with which the generation starts."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_definitions (query, generation, fingerprint) VALUES (%s, %s, %s) ON CONFLICT (query) DO UPDATE "
            "SET generation = excluded.generation, fingerprint = excluded.fingerprint",
            (generation.query, generation.number, fingerprint),
        )
