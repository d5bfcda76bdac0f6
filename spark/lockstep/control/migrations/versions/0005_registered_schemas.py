"""The schemas of a registry that records were read with: a replay reads them by the same, without the registry."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create ``registered_schemas``; see ``lockstep.control.schemas``. Of an id that the registry does not know, kind is null."""
    op.execute(
        """
        CREATE TABLE registered_schemas (
            topic           text NOT NULL,
            id              bigint NOT NULL,
            kind            text,
            schema          text,
            has_references  boolean NOT NULL DEFAULT false,
            asked_at        timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (topic, id)
        )
        """
    )
