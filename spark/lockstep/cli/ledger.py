"""``lockstep ledger``: what each commit has read, and the proof that nothing is missing."""

import itertools
import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lockstep import lake, ledger
from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.cli.status import lag
from lockstep.contracts import CONTRACTS, Contract
from lockstep.control.database import control
from lockstep.definition.tables import bronze_of
from lockstep.errors import LedgerBroken, LockstepError
from lockstep.ingest.bronze import accept_gap
from lockstep.ledger import archive, history, integrity
from lockstep.ledger.heads import head
from lockstep.settings import Settings

app = typer.Typer(help="The ledger of offsets, read from the Delta commits.", no_args_is_help=True)
app.command()(lag)
Streams = Annotated[list[str] | None, typer.Argument(help="Names of streams; all when none is named.")]


@app.command()
def show(
    streams: Streams = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Newest entries per stream.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the newest entries: run, code version, ranges and rows."""
    settings = configuration.load()
    chosen = _chosen(streams)
    newest = {c.name: _newest(settings, bronze_of(c), limit) for c in chosen}
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
    """Prove that the ranges join without gap or overlap, that rows fit, and that no commit is missing; exit code 1 if not.

    Also compares the Delta log of each table, in all layers, with its files and with its digests.
    """
    settings = configuration.load()
    ledgers = {c.name: problems(settings, c) for c in _chosen(streams)}
    for name, (entries, wrong) in ledgers.items():
        for problem in wrong:
            typer.echo(f"BROKEN  {problem}")
        if not wrong:
            typer.echo(f"whole   {name}: {entries} entries")
    tables = [t for t in lake.tables(settings) if not streams or t.partition(".")[2] in ledgers]
    findings = [finding for table in tables for finding in integrity.examine(settings, table)]
    for finding in findings:
        typer.echo(f"BROKEN  {finding.table}: {finding.problem}")
    broken = {finding.table for finding in findings}
    typer.echo(f"whole   {len(tables) - len(broken)} of {len(tables)} Delta logs")
    if broken or any(wrong for _, wrong in ledgers.values()):
        raise typer.Exit(1)


@app.command()
def gaps(streams: Streams = None) -> None:
    """List the gaps that somebody has accepted, and what else is missing."""
    settings = configuration.load()
    for contract in _chosen(streams):
        for e in map(ledger.entry, history.recorded(settings, bronze_of(contract), "record LIKE '%\"signed\"%'")):
            if e.signed:
                lost = ", ".join(f"{r.topic}-{r.partition} [{r.start}, {r.end})" for r in e.ranges if r.size)
                typer.echo(f"signed    {lost} by {e.signed['by']} on {_time(e.committed_at)}: {e.signed['reason']}")
        for problem in problems(settings, contract)[1]:
            typer.echo(f"unsigned  {problem}")


@app.command("accept-gap")
def accept(
    stream: Annotated[str, typer.Argument(help="The stream whose topic has lost its beginning.")],
    by: Annotated[str, typer.Option(help="Who signs.")],
    reason: Annotated[str, typer.Option(help="Why the loss is accepted.")],
) -> None:
    """Accept that retention has deleted offsets before they were read: the only way past them."""
    settings = configuration.load()
    if not by.strip() or not reason.strip():
        raise LockstepError("A gap is signed with a name and a reason: neither --by nor --reason may be empty.")
    (contract,) = _chosen([stream])
    with connect(settings, "ledger") as spark:
        entry = accept_gap(spark, settings, contract, by, reason)
    if entry is None:
        typer.echo(f"{stream}: nothing is missing, so nothing was signed.")
    else:
        typer.echo(f"{stream}: {sum(r.size for r in entry.ranges):,} offsets signed for, in entry {entry.seq}.")


def _newest(settings: Settings, table: str, limit: int) -> list[ledger.Entry]:
    newest = ledger.latest(settings, table)
    commits = history.recorded(settings, table, f"seq > {newest.seq - limit}") if newest else ()
    return list(map(ledger.entry, itertools.islice(commits, limit)))


def problems(settings: Settings, contract: Contract) -> tuple[int, list[str]]:
    """The number of entries of the stream's ledger, and everything that is broken in it since it was last archived."""
    table = bronze_of(contract)
    entries = list(ledger.entries(settings, table))
    wrong = list(ledger.problems(reversed(entries)))
    # The chain was verified up to there when it was archived.
    archived = archive.archived(settings, table).seq
    if entries and entries[-1].seq > archived + 1:
        wrong.append(
            f"{table}: entries {archived + 1} to {entries[-1].seq - 1} are neither in its log nor in {archive.TABLE.name}. "
            "Restore its _delta_log from a backup."
        )
    with control(settings) as connection:
        known = head(connection, table)
    try:
        ledger.check_tip(table, entries[0] if entries else None, known)
    except LedgerBroken as error:
        wrong.append(str(error))
    return entries[0].seq if entries else 0, wrong


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
