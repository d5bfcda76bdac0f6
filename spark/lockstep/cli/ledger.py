"""``lockstep ledger``: what each commit has read, and the proof that nothing is missing."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from lockstep import lake, ledger, session, terminal
from lockstep import settings as configuration
from lockstep.cli.status import lag
from lockstep.contracts import CONTRACTS, Contract
from lockstep.control.database import control
from lockstep.definition.tables import bronze_of
from lockstep.errors import LedgerBroken, LockstepError
from lockstep.ingest.bronze import accept_gap
from lockstep.ingest.repair import repair
from lockstep.ingest.truncation import Accepted, accept_recreation, accept_truncation
from lockstep.ledger import archive, history, integrity
from lockstep.ledger.damaged import damaged_files, take_out
from lockstep.ledger.heads import head
from lockstep.ledger.ranges import Range, size
from lockstep.maintain import torn
from lockstep.settings import Settings
from lockstep.terminal import Listing

app = typer.Typer(help="The ledger of offsets, read from the Delta commits.", no_args_is_help=True)
app.command()(lag)
# By the kind of a signature, the offsets that it is for.
_SIGNED: Mapping[str, Callable[[ledger.Entry], str]] = {
    ledger.SignedFor.GAP: lambda entry: f"{_offsets(entry.ranges)}, gone before they were read,",
    ledger.SignedFor.TRUNCATION: lambda entry: f"{_offsets(entry.lost)}, which the log has lost and bronze has,",
    ledger.SignedFor.RECREATION: lambda entry: f"{_offsets(entry.lost)}, of a topic that was deleted,",
    ledger.SignedFor.ERASURE: lambda _: "records were erased",
    ledger.SignedFor.REPAIR: lambda entry: f"{_offsets(entry.ranges) or 'no offsets'}, read again,",
}
By = Annotated[str, typer.Option(help="Who signs.")]
Reason = Annotated[str, typer.Option(help="Why the loss is accepted.")]
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
    console = terminal.console()
    for name, entries in newest.items():
        table = Listing("entry", "ranges [start, end)", "rows", "run", "code", "committed (UTC)", title=name)
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
                signature = f"by {e.signed['by']} on {_time(e.committed_at)}: {e.signed['reason']}"
                typer.echo(f"signed    {_SIGNED[e.signed.get('kind', ledger.SignedFor.GAP)](e)} {signature}")
        for problem in problems(settings, contract)[1]:
            typer.echo(f"unsigned  {problem}")


@app.command("accept-gap")
def accept(
    stream: Annotated[str, typer.Argument(help="The stream whose topic has lost its beginning.")],
    by: By,
    reason: Reason,
) -> None:
    """Accept that retention has deleted offsets before they were read: the only way past them."""
    settings, contract = configuration.load(), _signed_for(stream, by, reason)
    entry = accept_gap(settings, contract, by, reason)
    if entry is None:
        typer.echo(f"{stream}: nothing is missing, so nothing was signed.")
    else:
        typer.echo(f"{stream}: {size(entry.ranges):,} offsets signed for, in entry {entry.seq}.")


@app.command("accept-truncation")
def truncation(
    stream: Annotated[str, typer.Argument(help="The stream whose topic has lost its end.")],
    by: By,
    reason: Reason,
) -> None:
    """Accept that the broker lost records that were read: their rows stay.

    What the log has at their offsets now is produced again at its end, so that both layers read it. The position never goes back.
    """
    settings, contract = configuration.load(), _signed_for(stream, by, reason)
    _report(contract, accept_truncation(settings, contract, by, reason))


@app.command("accept-recreation")
def recreation(
    stream: Annotated[str, typer.Argument(help="The stream whose topic was deleted and created again.")],
    by: By,
    reason: Reason,
) -> None:
    """Accept that a topic was deleted and created again, and go on with the new one: rows that were read stay.

    The new topic is filled with markers up to the offsets that were read, and the records that it has there are produced again.
    """
    settings, contract = configuration.load(), _signed_for(stream, by, reason)
    _report(contract, accept_recreation(settings, contract, by, reason))


def _report(contract: Contract, accepted: Accepted | None) -> None:
    if accepted is None:
        typer.echo(f"{contract.name}: the topic has all that was read, so nothing was signed.")
        return
    typer.echo(
        f"{contract.name}: signed for {_offsets(accepted.entry.lost)}, in entry {accepted.entry.seq}. "
        f"{accepted.produced_again:,} records that were there in their place were produced again."
    )


@app.command("repair")
def repair_torn(
    name: Annotated[
        str, typer.Argument(help="The stream whose bronze table, or the table (layer.name), that is torn.")
    ],
    by: By,
    reason: Reason,
) -> None:
    """Put aside the newest commits that a power cut has torn. What they had is taken again: bronze's from Kafka at once, that of
    other layers from their source by the next runs.

    Run it while nothing runs but PostgreSQL, Kafka and a Spark server that was started after the power cut.
    """
    settings = configuration.load()
    _ensure_signed(by, reason)
    table = name if "." in name else f"bronze.{name}"
    if table.startswith("bronze."):
        _repair_bronze(settings, _chosen([table.removeprefix("bronze.")])[0], by, reason)
        return
    if not lake.exists(settings, table):
        raise LockstepError(f"There is no table {table}: name a stream, or one of {', '.join(lake.tables(settings))}.")
    # The tables are not registered: of torn ones, Spark could not be told.
    with session.connect(settings, "ledger") as spark:
        ended = torn.repair(spark, settings, table, by, reason)
    if not ended:
        typer.echo(f"{table}: no commit is torn, so nothing was done.")
    for one in ended:
        for place in one.put_aside:
            typer.echo(f"put aside  {place}")
        typer.echo(f"{one.table} ends with version {one.version - 1}: {one.following}.")


def _repair_bronze(settings: Settings, contract: Contract, by: str, reason: str) -> None:
    with session.connect(settings, "ledger") as spark:
        repaired = repair(spark, settings, contract, by, reason)
    if repaired is None:
        typer.echo(f"{contract.name}: no commit is torn or missing, so nothing was done.")
        return
    for place in repaired.put_aside:
        typer.echo(f"put aside  {place}")
    for e in repaired.entries:
        typer.echo(f"entry {e.seq}  {e.rows:,} rows of {_offsets(e.ranges) or 'no offsets'}")


@app.command("accept-damage")
def damage(
    table: Annotated[str, typer.Argument(help="The table, as layer.name.")],
    by: By,
    reason: Reason,
) -> None:
    """Take data files that cannot be read out of a table, so that all others can be. A replay brings their rows back.

    Reads the whole table.
    """
    settings = configuration.load()
    _ensure_signed(by, reason)
    if not lake.exists(settings, table):
        raise LockstepError(f"There is no table {table}: name one of {', '.join(lake.tables(settings))}.")
    found = damaged_files(settings, table)
    if not found:
        typer.echo(f"{table}: every data file can be read, so nothing was done.")
        return
    for one in found:
        typer.echo(f"damaged    {one.path}: {one.problem}")
    for place in take_out(settings, table, found, by, reason):
        typer.echo(f"put aside  {place}")
    typer.echo(
        f"{table}: {sum(one.rows for one in found):,} rows are missing now. A replay of their time brings them back, as long as "
        "the layer before has them: see `lockstep replay plan --help`."
    )


def _newest(settings: Settings, table: str, limit: int) -> list[ledger.Entry]:
    newest = ledger.latest(settings, table)
    commits = history.recorded(settings, table, f"seq > {newest.seq - limit}") if newest else ()
    return list(map(ledger.entry, itertools.islice(commits, limit)))


def problems(settings: Settings, contract: Contract) -> tuple[int, list[str]]:
    """The number of entries of the stream's ledger, and everything that is broken in it since it was last archived."""
    table = bronze_of(contract)
    with control(settings) as connection:
        known = head(connection, table)
    try:
        entries = list(ledger.entries(settings, table))
    except LedgerBroken as error:
        return 0, [str(error)]
    wrong = list(ledger.problems(reversed(entries)))
    # The chain was verified up to there when it was archived.
    archived = archive.archived(settings, table).seq
    if entries and entries[-1].seq > archived + 1:
        wrong.append(
            f"{table}: entries {archived + 1} to {entries[-1].seq - 1} are neither in its log nor in {archive.TABLE.name}. "
            "Restore its _delta_log from a backup."
        )
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


def _signed_for(stream: str, by: str, reason: str) -> Contract:
    _ensure_signed(by, reason)
    return _chosen([stream])[0]


def _ensure_signed(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip():
        raise LockstepError("A loss is signed with a name and a reason: neither --by nor --reason may be empty.")


def _offsets(ranges: Iterable[Range]) -> str:
    return ", ".join(f"{r.topic}-{r.partition} [{r.start}, {r.end})" for r in ranges if r.size)


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
