"""What Alembic runs for each upgrade: the migrations, on the connection and in the transaction of ``schema.apply``."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
