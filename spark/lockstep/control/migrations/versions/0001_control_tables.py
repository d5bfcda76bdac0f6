"""The tables of the first releases. A database that was made before there were migrations has them already, and is taken over."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create them where they are missing."""
    op.execute(Path(__file__).with_suffix(".sql").read_text())
