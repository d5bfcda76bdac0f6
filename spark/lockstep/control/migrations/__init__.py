"""The schema of the control database, as Alembic's migrations: each one is a step from one release's tables to the next one's."""
