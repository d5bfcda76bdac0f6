"""What was erased: the offsets that nobody may take from Kafka again, and the versions of tables that nobody may read."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create ``erasures``, ``erased_offsets`` and ``erased_versions``; see ``lockstep.control.erased``.

    Nothing in them says who was erased: a subject is known by its token alone.
    """
    op.execute(
        """
        CREATE TABLE erasures (
            number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            subject     text,
            asked_by    text NOT NULL,
            reason      text NOT NULL,
            asked_at    timestamptz NOT NULL DEFAULT now(),
            found       jsonb NOT NULL,
            receipt     jsonb,
            finished_at timestamptz
        );
        CREATE TABLE erased_offsets (
            topic      text NOT NULL,
            partition  integer NOT NULL,
            "offset"   bigint NOT NULL,
            erasure    bigint NOT NULL REFERENCES erasures (number),
            PRIMARY KEY (topic, partition, "offset")
        );
        CREATE TABLE erased_versions (
            table_name text PRIMARY KEY,
            version    bigint NOT NULL,
            erasure    bigint NOT NULL REFERENCES erasures (number)
        )
        """
    )
