"""``lockstep ledger``: what was read, commit by commit, and the proof that nothing is missing."""

import itertools
import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS, Contract
from lockstep.control import control, head
from lockstep.errors import LedgerBroken, LockstepError
from lockstep.ingest import ledger
from lockstep.ingest.bronze import table_of
from lockstep.settings import Settings

app = typer.Typer(help="The ledger of offsets, read from the Delta commits.", no_args_is_help=True)
Streams = Annotated[list[str] | None, typer.Argument(help="Streams, such as page_views; all when none is named.")]


@app.command()
def show(
    streams: Streams = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Newest entries per stream.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the newest entries: run, code version, ranges and rows."""
    settings = configuration.load()
    chosen = _chosen(streams)
    newest = {c.name: list(itertools.islice(ledger.entries(settings, table_of(c)), limit)) for c in chosen}
    if as_json:
        typer.echo(json.dumps({name: [_as_dict(e) for e in entries] for name, entries in newest.items()}, indent=2))
        return
    console = Console()
    for name, entries in newest.items():
        table = Table("entry", "ranges [start, end)", "rows", "run", "code", "committed (UTC)", title=name, box=None)
        for e in entries:
            ranges = "  ".join(f"{r.partition}: [{r.start:,}, {r.end:,})" for r in e.ranges if r.size)
            table.add_row(str(e.seq), ranges or "-", f"{e.rows:,}", e.run_id, e.code_version, _time(e.committed_at))
        console.print(table)


@app.command()
def verify(streams: Streams = None) -> None:
    """Prove that the ranges join without gap or overlap, that rows fit, and that no commit is missing; exit code 1 if not."""
    found = {c.name: problems(configuration.load(), c) for c in _chosen(streams)}
    for name, (entries, wrong) in found.items():
        for problem in wrong:
            typer.echo(f"BROKEN  {problem}")
        if not wrong:
            typer.echo(f"whole   {name}: {entries} entries")
    if any(wrong for _, wrong in found.values()):
        raise typer.Exit(1)


@app.command()
def gaps(streams: Streams = None) -> None:
    """List what is missing between the entries; nothing when nothing is."""
    settings = configuration.load()
    for contract in _chosen(streams):
        for problem in problems(settings, contract)[1]:
            typer.echo(problem)


def problems(settings: Settings, contract: Contract) -> tuple[int, list[str]]:
    """How many entries the stream's ledger has, and every way in which it is broken."""
    table = table_of(contract)
    entries = list(ledger.entries(settings, table))
    wrong = list(ledger.problems(reversed(entries)))
    with control(settings) as connection:
        known = head(connection, table)
    try:
        ledger.check_tip(table, entries[0] if entries else None, known)
    except LedgerBroken as error:
        wrong.append(str(error))
    return len(entries), wrong


def _chosen(streams: list[str] | None) -> list[Contract]:
    unknown = sorted(set(streams or ()) - CONTRACTS.keys())
    if unknown:
        raise LockstepError(f"There is no stream {', '.join(unknown)}: name one of {', '.join(CONTRACTS)}.")
    return [CONTRACTS[name] for name in streams or CONTRACTS]


def _as_dict(entry: ledger.Entry) -> dict[str, object]:
    return {
        "seq": entry.seq,
        "version": entry.version,
        "run_id": entry.run_id,
        "code_version": entry.code_version,
        "rows": entry.rows,
        "committed_at": _time(entry.committed_at),
        "ranges": [r.as_dict() for r in entry.ranges],
    }


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%F %T}"
