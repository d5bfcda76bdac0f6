"""``lockstep status`` and ``lockstep ledger lag``."""

import json
from typing import Annotated

import typer

from lockstep import settings, terminal
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import chosen
from lockstep.errors import LockstepError
from lockstep.stack.stack import Stack
from lockstep.status.gather import gather, gather_streams
from lockstep.status.lag import lag_table
from lockstep.status.model import Status
from lockstep.status.screen import show


def status(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Is it all right? Health, lag, freshness, runs, quarantine and verdicts; the exit code is 1 when it is not."""
    stack = Stack(settings.load())
    health = {name: service.state for name, service in stack.health().items()}
    report(gather(stack.settings, health), as_json)


def report(status: Status, as_json: bool) -> None:
    """Print the status, and exit with code 1 when it has a problem."""
    if as_json:
        typer.echo(json.dumps(status.as_dict(), indent=2))
    else:
        show(status)
    if not status.ok:
        raise typer.Exit(1)


def lag(
    streams: Annotated[list[str] | None, typer.Argument(help="Names of streams; all without one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show for each partition where the log ends, and the position and lag of each layer, batch and live."""
    if unknown := sorted(set(streams or ()) - CONTRACTS.keys()):
        raise LockstepError(f"There is no stream {', '.join(unknown)}: name one of {', '.join(CONTRACTS)}.")
    current = settings.load()
    found = gather_streams(current, chosen(current.views))
    lags = {s.name: s.partitions for s in found if s.name in (streams or CONTRACTS)}
    if as_json:
        typer.echo(json.dumps({name: [p.as_dict() for p in partitions] for name, partitions in lags.items()}, indent=2))
    else:
        terminal.console(wide=True).print(lag_table(lags))
