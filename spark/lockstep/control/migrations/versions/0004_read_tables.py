"""A read view of each aggregate: its entities, a full-text index over them, and up to where the log was read for it."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create ``read_entities`` and ``read_positions``; see ``lockstep.commands.read_table``."""
    op.execute(
        """
        CREATE TABLE read_positions (
            aggregate  text NOT NULL,
            partition  integer NOT NULL,
            position   bigint NOT NULL,
            version    text NOT NULL,
            PRIMARY KEY (aggregate, partition)
        );
        CREATE TABLE read_entities (
            aggregate  text NOT NULL,
            key        text NOT NULL,
            entity     text NOT NULL,
            partition  integer NOT NULL,
            version    integer NOT NULL,
            at         timestamptz NOT NULL,
            state      jsonb NOT NULL,
            -- Field names are words too: of a mapping, they are what it is of.
            words      tsvector NOT NULL GENERATED ALWAYS AS (
                to_tsvector('simple', key || ' ' || entity) || jsonb_to_tsvector('simple', state, '["key", "string", "numeric"]')
            ) STORED,
            PRIMARY KEY (aggregate, key, entity)
        );
        CREATE INDEX read_entities_words ON read_entities USING gin (words)
        """
    )
