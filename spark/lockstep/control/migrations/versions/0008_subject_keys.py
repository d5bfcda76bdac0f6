"""A key for each person, under which the tokens of her personal values are made, and when an erasure has destroyed it."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create ``subject_keys``, and add ``erasures.key_destroyed_at``; see ``lockstep.control.subject_keys``.

    Nothing in them says who a person is: a subject is known by its token alone, as in ``erasures``.
    """
    op.execute(
        """
        CREATE TABLE subject_keys (
            subject  text PRIMARY KEY,
            key      bytea NOT NULL,
            made_at  timestamptz NOT NULL DEFAULT now()
        );
        ALTER TABLE erasures ADD COLUMN key_destroyed_at timestamptz
        """
    )
