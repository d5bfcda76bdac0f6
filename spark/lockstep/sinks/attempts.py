"""Which batches were tried: ``at_most_once`` records each batch here before it sends it. PostgreSQL, database ``lockstep``."""

from typing import TYPE_CHECKING

from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.settings import Settings


def first_attempt(settings: "Settings", sink: str, generation: int, batch_id: int) -> bool:
    """Record that the batch is tried now; return False if it, or a later one, was tried before."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO delivery_attempts AS known (sink, generation, batch_id) VALUES (%s, %s, %s) "
            "ON CONFLICT (sink, generation) DO UPDATE SET batch_id = excluded.batch_id, tried_at = now() "
            "WHERE known.batch_id < excluded.batch_id RETURNING batch_id",
            (sink, generation, batch_id),
        )
        return cursor.fetchone() is not None
