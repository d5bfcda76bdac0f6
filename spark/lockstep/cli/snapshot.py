"""``lockstep snapshot``: take the captured tables as they are now."""

from typing import Annotated

import typer

from lockstep import settings
from lockstep.stack.connector_config import captured_tables
from lockstep.stack.new_generation import begin_generation


def snapshot(yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False) -> None:
    """Take the captured tables as they are now, after their database was restored or replaced.

    A new generation begins: its changes are newer than all before, and rows that the tables do not have any more are deleted.
    """
    current = settings.load()
    tables = captured_tables(current)
    if not yes:
        typer.confirm(f"Read {', '.join(tables)} of the database {current.package} again?", abort=True)
    number = begin_generation(current)
    typer.echo(f"Generation {number}: the snapshot of {len(tables)} tables has begun; see `lockstep logs connect`.")
