"""``lockstep plan`` and ``lockstep apply``."""

import psycopg2
import typer
from rich.console import Console

from lockstep import settings
from lockstep.deploy import apply as making
from lockstep.deploy.observe import observe, try_views
from lockstep.deploy.plan import Action, Change, Observed, plan
from lockstep.errors import LockstepError
from lockstep.stack.stack import Stack

console = Console(highlight=False, soft_wrap=True)
_STYLES = {Action.CREATE: "green", Action.CHANGE: "yellow", Action.REMOVE: "red", Action.NAME: "bold red"}


def show_plan() -> None:
    """Show what differs between the project's files and what runs. The exit code is 2 if `apply` has something to do.

    It is 1 if a contract or a view is refused.
    """
    observed = _observed(Stack(settings.load()))
    changes = _show(observed)
    if observed.broken:
        raise typer.Exit(1)
    if any(change.is_made for change in changes):
        raise typer.Exit(2)


def apply() -> None:
    """Make what runs as the project's files say. What need not stop goes on; running it twice changes nothing."""
    stack = Stack(settings.load())
    observed = _observed(stack)
    _show(observed)
    if observed.broken:
        console.print("Nothing was changed: correct what is refused first.", style="red")
        raise typer.Exit(1)
    making.apply(stack, observed, lambda line: console.print(f"  {line}", markup=False))


def _observed(stack: Stack) -> Observed:
    try:
        return try_views(stack.settings, observe(stack))
    except psycopg2.OperationalError as error:
        raise LockstepError(
            f"The control database does not answer ({error}): start the stack with `lockstep up`."
        ) from error


def _show(observed: Observed) -> list[Change]:
    changes = plan(observed)
    for change in changes:
        console.print(str(change), style=_STYLES[change.action], markup=False)
    if not changes:
        console.print("Everything runs as the project's files say.", style="green")
    return changes
