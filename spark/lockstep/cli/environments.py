"""``lockstep --env NAME diff`` and ``remove``; ``apply`` is in :mod:`lockstep.cli.deploy`."""

from typing import Annotated

import typer
from rich.text import Text

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.catalog import connect
from lockstep.definition.registry import chosen
from lockstep.environments import diff as comparing
from lockstep.environments import remove as removing
from lockstep.environments.apply import apply as apply_environment
from lockstep.environments.diff import Verdict, ViewDiff
from lockstep.settings import Settings
from lockstep.terminal import Listing

console = terminal.console(wide=True)
_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.DIFFERENT: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.NOT_COMPARED: "yellow",
}


def apply(settings: Settings, since: str | None) -> None:
    """Make the environment, or bring it up to date."""
    if settings.home == settings.project / ".lockstep":
        console.print(
            f"Production runs the files of {settings.project} too: its next task takes what you change here. Try a change in "
            "another checkout, with LOCKSTEP_HOME of this one.",
            style="yellow",
        )
    apply_environment(settings, since, lambda line: console.print(f"  {line}", markup=False))


def diff(
    views: Annotated[list[str] | None, typer.Argument(help="Names of views; all when none is named.")] = None,
) -> None:
    """Compare the gold of the environment of --env with production. The exit code is 1 if a view differs.

    Compared are the rows that both have as final, and that the sample has all records of.
    """
    settings = configuration.load()
    removing.ensure_there(settings)
    with connect(settings, "diff") as spark:
        found = [*comparing.diff(spark, settings, chosen(",".join(views) if views else settings.views))]
    _show(found)
    if any(one.verdict is Verdict.DIFFERENT for one in found):
        raise typer.Exit(1)


def remove(yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False) -> None:
    """Remove the environment of --env: its lake, its control database and its schemas. Production stays as it is."""
    settings = configuration.load()
    removing.ensure_there(settings)
    if not yes:
        typer.confirm(f"Remove {settings.lake}, and the database {settings.control_database}?", abort=True)
    removing.remove(settings)
    console.print(f"The environment {settings.env} is removed.", markup=False)


def _show(found: list[ViewDiff]) -> None:
    table = Listing()
    for column in ("view", "compared (UTC)", "equal", "changed", "only here", "only in production", "verdict"):
        table.add_column(column, justify="left" if column in ("view", "compared (UTC)", "verdict") else "right")
    for one in found:
        counts = [f"{count:,}" for count in (one.equal, one.changed, one.only_here, one.only_there)]
        cells = [str(one.extent), *counts] if one.extent else ["-"] * 5
        table.add_row(one.view, *cells, Text(one.verdict, style=_STYLES[one.verdict]))
    console.print(table)
    for one in found:
        for line in (*([one.reason] if one.reason else []), *one.columns, *one.examples):
            console.print(f"{one.view}: {line}", markup=False)
