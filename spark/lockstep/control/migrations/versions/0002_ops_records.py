"""The newest records of the platform's own tables leave their Delta logs, because Delta removes old commits from a log."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create ``ops_records``; see ``lockstep.control.records``."""
    op.execute(
        """
        CREATE TABLE ops_records (
            table_name  text NOT NULL,
            key         text NOT NULL,
            seq         bigint NOT NULL,
            record      jsonb NOT NULL,
            written_at  timestamptz NOT NULL,
            PRIMARY KEY (table_name, key),
            UNIQUE (table_name, seq)
        )
        """
    )
