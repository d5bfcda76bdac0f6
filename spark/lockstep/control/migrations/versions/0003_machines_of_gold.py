"""A live query can go on from the machines of the batch layer."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add ``live_generations.seed``; see ``lockstep.live.seeds``."""
    op.execute("ALTER TABLE live_generations ADD COLUMN seed jsonb")
