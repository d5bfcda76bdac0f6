"""``lockstep plan`` and ``lockstep apply``."""

from typing import Annotated

import typer

from lockstep import settings, terminal
from lockstep.catalog import connect
from lockstep.cli import environments
from lockstep.deploy import apply as making
from lockstep.deploy import remains as removed
from lockstep.deploy.observe import compare_files, observe, try_views
from lockstep.deploy.plan import Action, Change, Observed, plan, purged
from lockstep.deploy.purge import PURGE, purge
from lockstep.deploy.remains import Remains
from lockstep.environments.sample import DEFAULT
from lockstep.errors import LockstepError
from lockstep.stack.stack import Stack

console = terminal.console()
_STYLES = {
    Action.CREATE: "green",
    Action.CHANGE: "yellow",
    Action.REMOVE: "red",
    Action.NAME: "bold red",
    Action.FOLLOW: "dim",
}
Purge = Annotated[
    bool, typer.Option("--purge", help="Also what removed views and streams have left, which is then removed for ever.")
]


def show_plan(with_purge: Purge = False) -> None:
    """Show what differs between the project's files and what runs. The exit code is 2 if `apply` has something to do.

    It is 1 if a contract or a view is refused.
    """
    stack = Stack(settings.load())
    observed = _observed(stack)
    changes = _show(observed, _remains(stack, observed, with_purge))
    if observed.broken:
        raise typer.Exit(1)
    if any(change.is_made for change in changes):
        raise typer.Exit(2)


def apply(
    since: Annotated[
        str | None,
        typer.Option(
            help="With --env, where a new sample begins: earliest, a time with its zone, or how long ago, such as 2h; "
            f"{DEFAULT} when it is left out."
        ),
    ] = None,
    with_purge: Purge = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before the purge.")] = False,
) -> None:
    """Make what runs as the project's files say. What need not stop goes on; running it twice changes nothing.

    With --env NAME, make that environment, which is batch only: production's records since a time, taken through ingest, refine
    and roll-up by this command, into a lake of its own. Again, it goes on where it was.
    """
    current = settings.load()
    if current.env:
        if with_purge:
            raise LockstepError(
                "--purge is of production: `lockstep --env NAME remove` removes an environment as a whole."
            )
        environments.apply(current, since)
        return
    if since:
        raise LockstepError("--since is where an environment's sample begins: `lockstep --env NAME apply --since …`.")
    stack = Stack(current)
    observed = _observed(stack)
    remains = _remains(stack, observed, with_purge)
    _show(observed, remains)
    if observed.broken:
        console.print("Nothing was changed: correct what is refused first.", style="red")
        raise typer.Exit(1)
    if remains and not yes:
        typer.confirm(f"Remove for ever what is left of {', '.join(map(str, remains))}?", abort=True)
    making.apply(stack, observed, _say)
    if remains:
        with connect(stack.settings, PURGE) as spark:
            for left in remains:
                purge(spark, stack.settings, left)
                _say(f"{left}: purged")


def _say(line: str) -> None:
    console.print(f"  {line}", markup=False)


def _remains(stack: Stack, observed: Observed, with_purge: bool) -> list[Remains]:
    """What a purge removes. Nothing is known of it while a file is broken: that may have any view or stream."""
    return removed.find(stack.settings) if with_purge and not observed.broken else []


def _observed(stack: Stack) -> Observed:
    return try_views(stack.settings, compare_files(stack.settings, observe(stack)))


def _show(observed: Observed, remains: list[Remains]) -> list[Change]:
    changes = [*plan(observed), *purged(remains)]
    for change in changes:
        console.print(str(change), style=_STYLES[change.action], markup=False)
    if not changes:
        console.print("Everything runs as the project's files say.", style="green")
    return changes
