"""``lockstep check``: validate views before anything of them starts."""

from typing import Annotated

import typer

from lockstep import settings, terminal
from lockstep.catalog import connect
from lockstep.commands.registry import AGGREGATES
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS, named, refused_results
from lockstep.definition.trial import ensure
from lockstep.errors import ViewRefused
from lockstep.quality import suites
from lockstep.refine.rules import refusals


def check(views: Annotated[str, typer.Argument(help="Names, comma-separated.")] = "all") -> None:
    """Check that each view can run live and in batch, and that each suite can be used. Nothing is started, no table is read."""
    console = terminal.console()
    refused = []
    config = settings.load()
    files = CONTRACTS.broken | VIEWS.broken | AGGREGATES.broken | suites.problems(config)
    for place, reason in (files | refused_results()).items():
        refused.append(place)
        console.print(f"{place}: {reason}", style="red", markup=False)
    with connect(config, "check") as spark:
        for contract in CONTRACTS.values():
            for reason in refusals(spark, contract):
                refused.append(contract.name)
                console.print(reason, style="red", markup=False)
        for view in named(views):
            try:
                ensure(spark, view)
                console.print(f"{view.name}: runs live and in batch")
            except ViewRefused as error:
                refused.append(view.name)
                console.print(str(error), style="red", markup=False)
    if refused:
        raise typer.Exit(1)
