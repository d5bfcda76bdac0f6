"""``lockstep commands``: event sourcing. Send commands, decide them, and ask the log what happened."""

import json
import signal
from datetime import UTC, datetime
from threading import Event
from typing import Annotated, Any

import typer

from lockstep import settings as configuration
from lockstep.cli.options import instant
from lockstep.commands import client, processor, read_table
from lockstep.commands import history as log
from lockstep.commands.aggregate import Entity
from lockstep.commands.errors import CommandInvalid
from lockstep.commands.outcomes import outcomes as outcomes_of
from lockstep.commands.records import Status, problems_of
from lockstep.commands.registry import AGGREGATES
from lockstep.commands.registry import aggregate as named
from lockstep.commands.restore import now
from lockstep.errors import LockstepError

app = typer.Typer(help="Commands, the events that they become, and what events add up to.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="AGGREGATE", help="Its name, such as in `lockstep commands list`.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="What chooses the partition, such as a ledger.")]
EntityName = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity; default: as the key.")]


@app.command("list")
def list_() -> None:
    """List the project's aggregates with their commands, and the files that define none."""
    for name, found in AGGREGATES.items():
        typer.echo(f"{name}: {found.description}")
        for command in found.commands:
            fields = command.model_json_schema()["properties"].keys() - {"type", "command_id", "expected_version"}
            typer.echo(f"  {command.model_fields['type'].default}({', '.join(sorted(fields))})")
    for file, reason in AGGREGATES.broken.items():
        typer.echo(f"{file}: {reason}", err=True)
    if AGGREGATES.broken:
        raise typer.Exit(1)


@app.command()
def run(
    aggregates: Annotated[list[str] | None, typer.Argument(help="Their names; default: all.")] = None,
    partition: Annotated[list[int] | None, typer.Option(min=0, help="Decide for this one; default: all.")] = None,
) -> None:
    """Decide commands until Ctrl-C. A second one for the same partitions takes over, and this one ends with an error."""
    chosen, stop = [named(name) for name in aggregates or AGGREGATES], Event()
    for found in chosen:
        if unknown := {*(partition or ())} - {*range(found.partitions)}:
            raise LockstepError(
                f"{found.name} has {found.partitions} partitions, from 0 on, and not {sorted(unknown)}."
            )
    if not chosen:
        raise LockstepError("The project has no aggregates: see docs/event-sourcing.md.")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    numbers = {found: sorted({*(partition or range(found.partitions))}) for found in chosen}
    processor.run(configuration.load(), numbers, stop)


@app.command()
def send(
    aggregate: Name,
    command: Annotated[str, typer.Argument(help='JSON: {"type": "…", …}. With a command_id, it can be sent again.')],
    timeout: Annotated[float, typer.Option(min=0, help="How long to wait for the outcome, in seconds.")] = 30,
) -> None:
    """Send a command, and print its outcome; the exit code is 1 if it was rejected."""
    found = named(aggregate)
    try:
        checked = found.command(json.loads(command))
    except (ValueError, KeyError, TypeError) as error:
        raise CommandInvalid(
            f"This is no command of {found.name} ({problems_of(error)}). Nothing was sent; see `lockstep commands list`."
        ) from error
    outcome = client.send(configuration.load(), found, checked, timeout)
    typer.echo(outcome.model_dump_json())
    if outcome.status == Status.REJECTED:
        raise typer.Exit(1)


@app.command()
def show(
    aggregate: Name,
    key: Key,
    entity: EntityName = "",
    time: Annotated[str, typer.Option(metavar="TIME", help="As it was then: 2026-11-20T10:00:00Z.")] = "",
    version: Annotated[int | None, typer.Option(min=0, help="After so many of its events.")] = None,
) -> None:
    """Print an entity as JSON, as it is now or was at a moment: its state, its version, and the time of its newest event."""
    if time and version is not None:
        raise LockstepError("Give --time or --version, not both.")
    settings, found, name = configuration.load(), named(aggregate), entity or key
    if not time and version is None:
        # A long history is not read for it: a snapshot has most of it.
        typer.echo(_entity(now(settings, found, key, name)))
        return
    steps = log.history(settings, found, key, name)
    if version is not None:
        steps = steps[:version]
        if len(steps) < version:
            raise LockstepError(f"{name} has no version {version} yet: its newest is {len(steps)}.")
    moment = instant(time) if time else datetime.max.replace(tzinfo=UTC)
    typer.echo(_entity(log.at(found, steps, moment)))


@app.command()
def history(
    aggregate: Name,
    key: Key,
    entity: EntityName = "",
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE", help="Only events with this value, such as product_id=A; repeat it for more."
        ),
    ] = None,
) -> None:
    """Print each event of an entity as JSON, with the version and the state after it: why it is as it is."""
    wanted = [_pair(text) for text in where or ()]
    for step in log.history(configuration.load(), named(aggregate), key, entity or key):
        event = step.recorded.event.model_dump(mode="json")
        if all(str(event.get(field)) == value for field, value in wanted):
            about = {"event_id": step.recorded.event_id, "command_id": step.recorded.command_id}
            typer.echo(json.dumps(about | {"event": event, **json.loads(_entity(step.entity))}))


@app.command()
def project(
    aggregate: Name,
    again: Annotated[bool, typer.Option("--rebuild", help="Forget it first, and fold the whole log.")] = False,
) -> None:
    """Bring the read view in PostgreSQL, which `search` asks, to where the log is now."""
    settings, found = configuration.load(), named(aggregate)
    count = (read_table.rebuild if again else read_table.project)(settings, found)
    typer.echo(f"{count:,} events were folded into the read view of {found.name}.")


@app.command()
def search(
    aggregate: Name,
    words: Annotated[str, typer.Argument(help='As in a search engine: a b, "a b", a or b, -a.')],
    limit: Annotated[int, typer.Option(min=1, help="The most entities that are printed.")] = 20,
) -> None:
    """Print the entities whose key, name or state have these words as JSON, the best first. It reads the log to its end first."""
    settings, found = configuration.load(), named(aggregate)
    read_table.project(settings, found)
    for key, name, entity in read_table.search(settings, found, words, limit):
        typer.echo(json.dumps({"key": key, "entity": name, **json.loads(_entity(entity))}))


@app.command()
def outcomes(
    aggregate: Name,
    rejected: Annotated[bool, typer.Option("--rejected", help="Only those of commands that became no event.")] = False,
    command_id: Annotated[str, typer.Option(help="Only that of this command.")] = "",
) -> None:
    """Print what became of commands, the oldest first in each partition, as JSON; rejected ones have the reason."""
    for outcome in outcomes_of(configuration.load(), named(aggregate)):
        if (not rejected or outcome.status == Status.REJECTED) and command_id in ("", outcome.command_id):
            typer.echo(outcome.model_dump_json())


def _entity(entity: Entity[Any]) -> str:
    return json.dumps(
        {
            "version": entity.version,
            "at": entity.at.isoformat(timespec="milliseconds") if entity.at else None,
            "state": entity.state.model_dump(mode="json"),
        }
    )


def _pair(text: str) -> tuple[str, str]:
    field, sign, value = text.partition("=")
    if not sign:
        raise LockstepError(f"--where {text} has no value: write it as product_id=A.")
    return field, value
