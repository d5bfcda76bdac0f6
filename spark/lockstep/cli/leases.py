"""``lockstep leases``: who writes which table now, and how to end a writer that hangs."""

from typing import Annotated

import typer

from lockstep import lake
from lockstep import settings as configuration
from lockstep.control import leases
from lockstep.control.leases import Held
from lockstep.definition.registry import VIEWS
from lockstep.errors import LockstepError
from lockstep.settings import Settings

app = typer.Typer(help="Who writes which table now.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the tables and live queries that somebody writes, since when, and who it is."""
    for one in _held(configuration.load()):
        typer.echo(f"{one.name or '(another)'}: {one}")


@app.command()
def end(
    name: Annotated[str, typer.Argument(help="The table, or checkpoint:VIEW for a live query.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """End the connection of a writer that hangs: its run fails, and another one may write."""
    settings = configuration.load()
    found = next((one for one in _held(settings) if one.name == name), None)
    if found is None:
        raise LockstepError(f"Nobody holds {name}: see `lockstep leases list`.")
    if not yes:
        typer.confirm(f"End {found}, which holds {name}?", abort=True)
    ended = leases.end(settings, found)
    typer.echo(f"{name}: {found} {'was ended' if ended else 'was gone already'}.")


def _held(settings: Settings) -> list[Held]:
    return leases.held(settings, [*lake.tables(settings), *(f"checkpoint:{view}" for view in VIEWS)])
