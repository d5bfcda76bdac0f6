"""``lockstep snapshot``: take the captured tables as they are now."""

from typing import Annotated

import typer

from lockstep import settings
from lockstep.errors import LockstepError
from lockstep.stack.connector_config import captured_tables
from lockstep.stack.new_generation import begin_generation


def snapshot(
    database: Annotated[str, typer.Option(help="The source database; by default the project's own.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Take the captured tables as they are now, after their database was restored or replaced.

    A new generation begins: its changes are newer than all before, and rows that the tables do not have any more are deleted.
    """
    current = settings.load()
    name = database or current.package
    tables = captured_tables(current, name)
    if not tables:
        raise LockstepError(f"No contract captures a table of {name}: name one of {', '.join(current.sources)}.")
    if not yes:
        typer.confirm(f"Read {', '.join(tables)} of the database {name} again?", abort=True)
    number = begin_generation(current, name)
    typer.echo(f"Generation {number}: the snapshot of {len(tables)} tables has begun; see `lockstep logs connect`.")
