"""``lockstep check``: validate views before anything of them starts."""

from typing import Annotated

import typer
from rich.console import Console

from lockstep import settings
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS, named
from lockstep.definition.trial import ensure
from lockstep.errors import ViewRefused


def check(views: Annotated[str, typer.Argument(help="Names, comma-separated.")] = "all") -> None:
    """Check that each view can run live and in batch. Nothing is started, and no table is read."""
    console = Console(highlight=False, soft_wrap=True)
    refused = []
    for file, reason in (CONTRACTS.broken | VIEWS.broken).items():
        refused.append(file)
        console.print(f"{file}: {reason}", style="red", markup=False)
    with connect(settings.load(), "check") as spark:
        for view in named(views):
            try:
                ensure(spark, view)
                console.print(f"{view.name}: runs live and in batch")
            except ViewRefused as error:
                refused.append(view.name)
                console.print(str(error), style="red", markup=False)
    if refused:
        raise typer.Exit(1)
