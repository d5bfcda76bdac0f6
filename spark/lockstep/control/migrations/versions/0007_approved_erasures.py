"""Who has approved an erasure."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add ``erasures.approved_by``; null where nobody was asked, as by the command."""
    op.execute("ALTER TABLE erasures ADD COLUMN approved_by text")
