"""Views that cannot run are refused before anything of them starts; ``lockstep check`` tells it of all of them."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lockstep import settings
from lockstep.definition.check import problems
from lockstep.errors import ViewRefused
from lockstep.version import definition_version
from lockstep.views import View, named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The definitions that this process has seen to run: both layers ask, and a trial takes seconds.
_seen_to_run: set[str] = set()


def ensure(spark: "SparkSession", view: View) -> None:
    """Refuse a view that is not sound, or that Spark cannot run in both layers. It reads and writes no table.

    Raises:
        ViewRefused: says why, and what to change.
    """
    from lockstep.definition.trial import refusals

    if found := problems(view):
        raise ViewRefused(view.name, found)
    definition = definition_version(view)
    if definition in _seen_to_run:
        return
    if found := refusals(spark, view):
        raise ViewRefused(view.name, found)
    _seen_to_run.add(definition)


def check(views: Annotated[str, typer.Argument(help="Names, comma-separated.")] = "all") -> None:
    """Say of each view whether it can run, live and in batch; nothing is started, and no table is read."""
    from lockstep.session import connect

    console = Console(highlight=False, soft_wrap=True)
    refused = []
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
