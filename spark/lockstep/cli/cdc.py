"""``lockstep cdc``: is the lake equal to the databases that it captures?"""

from collections.abc import Iterable
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.catalog import connect
from lockstep.contracts import Contract, captured_tables
from lockstep.contracts.captured import database_of
from lockstep.errors import LockstepError
from lockstep.reconcile.with_source import Verified
from lockstep.reconcile.with_source import verify as work

Streams = Annotated[list[str] | None, typer.Argument(help="Names of captured tables; all when none is named.")]

app = typer.Typer(help="Captured tables.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Captured tables."""


@app.command()
def verify(
    streams: Streams = None,
    database: Annotated[str, typer.Option(help="Only the tables of this source database.")] = "",
    timeout: Annotated[int, typer.Option(min=0, help="How long to wait for silver, in seconds.")] = 300,
) -> None:
    """Compare silver with the source database, row by row, as of one snapshot of the database; exit code 1 if they differ.

    Writers need not stop. A table that is equal at once is not waited for.
    """
    settings = configuration.load()
    contracts = [c for c in chosen(streams) if database in ("", database_of(settings, c))]
    if not contracts:
        raise LockstepError(f"None of these tables is of {database}: name one of {', '.join(settings.sources)}.")
    with connect(settings, "cdc") as spark:
        found = [work(spark, settings, contract, timeout) for contract in contracts]
    report(map(sentence, found), differ=any(verified.counts for verified in found))


def report(sentences: Iterable[str], *, differ: bool) -> None:
    """Print what was found; the exit code is 1 if something differs."""
    console = terminal.console()
    for text in sentences:
        console.print(text, markup=False)
    if differ:
        raise typer.Exit(1)


def sentence(verified: Verified) -> str:
    """What is printed of a table: one line, and one for each example."""
    at = f"LSN {verified.lsn >> 32:X}/{verified.lsn & 0xFFFFFFFF:08X}"
    if not verified.counts:
        return f"equal   {verified.stream}: {verified.rows:,} rows at {at}"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(verified.counts.items()))
    lines = [f"DIFFER  {verified.stream}: {verified.rows:,} rows at {at}: {counts}"]
    for one in verified.examples:
        columns = f" ({', '.join(one.columns)})" if one.columns else ""
        lines.append(f"        {' '.join(one.key)}: {one.kind}{columns}")
    return "\n".join(lines)


def chosen(streams: list[str] | None) -> list[Contract]:
    """The contracts of these captured tables; of all when none is named.

    Raises:
        LockstepError: a name is that of no captured table.
    """
    captured = captured_tables()
    if unknown := sorted({*(streams or ())} - captured.keys()):
        raise LockstepError(f"{unknown[0]} is no captured table: name one of {', '.join(captured)}.")
    return [captured[name] for name in streams or captured]
