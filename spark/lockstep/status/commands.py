"""``lockstep status``."""

import json
from typing import Annotated

import typer

from lockstep import settings
from lockstep.stack.stack import Stack
from lockstep.status.gather import gather
from lockstep.status.screen import show


def status(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Is it all right? Health, lag, freshness, runs, quarantine and verdicts; the exit code is 1 when it is not."""
    stack = Stack(settings.load())
    found = gather(stack.settings, stack)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if not found.ok:
        raise typer.Exit(1)
