"""``lockstep quarantine``: rows that were put aside, and how they come back."""

import getpass
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import functions as F

from lockstep import lake, terminal
from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import Tables
from lockstep.errors import LockstepError
from lockstep.redrive import run
from lockstep.redrive.rows import RedriveRefused, Row, parse_place, shown, with_fields
from lockstep.terminal import Listing

app = typer.Typer(no_args_is_help=True, help="Rows that were put aside: why, what they hold, and how they come back.")
console = terminal.console()
Stream = Annotated[str, typer.Argument(help="The stream.")]
At = Annotated[list[str] | None, typer.Option("--at", help="The row at PARTITION:OFFSET; may be repeated.")]
Reason = Annotated[str | None, typer.Option("--reason", help="The rows with exactly this reason.")]


@app.command("list")
def list_(streams: Annotated[list[str] | None, typer.Argument(help="Streams; all without one.")] = None) -> None:
    """Count the rows of quarantine by stream and reason."""
    settings = configuration.load()
    table = Listing("stream", "reason", "rows", "first (UTC)", "last (UTC)")
    with connect(settings, "quarantine") as spark:
        for contract in [_contract(name) for name in streams] if streams else CONTRACTS.values():
            name = Tables.of(contract).quarantine
            if not lake.exists(settings, name):
                continue
            counts = lake.read(spark, settings, name).groupBy("_reason")
            for row in counts.agg(
                F.count("*").alias("rows"), F.min("_arrival").alias("first"), F.max("_arrival").alias("last")
            ).collect():
                times = (f"{row[end]:%F %T}" for end in ("first", "last"))
                table.add_row(contract.name, row["_reason"], f"{row['rows']:,}", *times)
    console.print(table if table.row_count else "No row is in quarantine.")


@app.command()
def show(
    stream: Stream,
    at: At = None,
    reason: Reason = None,
    limit: Annotated[int, typer.Option("--limit", help="How many, the newest first.")] = 20,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes as they came, with PII.")] = False,
) -> None:
    """Show rows of quarantine: where and when they came, why they are here, what they hold, and whether they were re-driven."""
    settings, contract = configuration.load(), _contract(stream)
    with connect(settings, "quarantine") as spark:
        found = run.rows(spark, settings, contract, reason, [parse_place(one) for one in at or ()], limit)
        done = run.redriven(spark, settings, contract) if found else set()
    for row in found:
        again = ", re-driven" if row.place in done else ""
        console.print(f"{row.partition}:{row.offset}  {row.arrival:%F %T} UTC{again}  {row.reason}", markup=False)
        value = (row.value or b"").decode(errors="replace") if raw else shown(row.value, contract)
        console.print(f"    {value}", markup=False)
    if not found:
        console.print("There is no such row in quarantine.")


@app.command()
def redrive(
    stream: Stream,
    at: At = None,
    reason: Reason = None,
    everything: Annotated[bool, typer.Option("--all", help="All rows of the stream's quarantine.")] = False,
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another value of a field, as FIELD=JSON, such as amount=0; may be repeated."),
    ] = None,
    value: Annotated[
        Path | None, typer.Option("--value", exists=True, help="A file with the whole value, for a single row.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Send rows to their topic again: as they are, after the contract was mended, or with other values. Each row is sent once.

    They come as new records, so a view may find them late. A replay of silver takes the rows as they came, and in their time.
    """
    settings, contract = configuration.load(), _contract(stream)
    if not (at or reason or everything):
        raise RedriveRefused("It is not said which rows: name them by --at or --reason, or take --all.")
    if value and (fields or len(at or ()) != 1):
        raise RedriveRefused("--value is the whole value of one row: name that row by --at, and leave out --set.")
    changed = _fields(fields or ())
    with connect(settings, "redrive") as spark:
        found = run.rows(spark, settings, contract, reason, [parse_place(one) for one in at or ()])
        if not found:
            raise RedriveRefused(f"{Tables.of(contract).quarantine} has no such row: see `lockstep quarantine show`.")
        values = {row: _value(row, changed, value, contract) for row in found}
        if not yes:
            typer.confirm(f"Send {len(values):,} rows to {contract.topic} again?", abort=True)
        result = run.redrive(spark, settings, contract, values, getpass.getuser())
    console.print(f"{len(result.sent):,} rows were sent to {contract.topic}.")
    if result.before:
        console.print(f"{len(result.before):,} were re-driven before, and not sent again.")


def _contract(stream: str) -> Contract:
    if stream not in CONTRACTS:
        raise LockstepError(f"There is no stream {stream}: name one of {', '.join(CONTRACTS)}.")
    return CONTRACTS[stream]


def _fields(texts: "list[str] | tuple[str, ...]") -> dict[str, Any]:
    found = {}
    for text in texts:
        name, separator, content = text.partition("=")
        try:
            found[name] = json.loads(content)
        except ValueError:
            separator = ""
        if not separator or not name:
            raise RedriveRefused(f"{text!r} sets nothing: write FIELD=JSON, such as amount=0 or page='\"/\"'.")
    return found


def _value(row: Row, changed: dict[str, Any], file: Path | None, contract: Contract) -> bytes | None:
    if file:
        return file.read_bytes()
    return with_fields(row, changed, contract) if changed else row.value
