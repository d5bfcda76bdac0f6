"""``lockstep replay``: compute history again. A file and the options have the same fields as the form in Airflow."""

import getpass
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.catalog import connect
from lockstep.cli.options import options_of
from lockstep.control import intervals
from lockstep.replay import record, run
from lockstep.replay.parse import load, parse
from lockstep.replay.record import Replay
from lockstep.replay.report import diff_as_table, plan_as_table
from lockstep.replay.request import Request
from lockstep.replay.resolve import resolve
from lockstep.serving import manifest
from lockstep.settings import Settings
from lockstep.terminal import Listing, plain

# What the records and leases of a command name as the run; a DAG's run has an id of its own.
RUN_ID = "cli"

app = typer.Typer(help="Redo history: plan, shadow, diff, promote, undo.", no_args_is_help=True)
console = terminal.console(wide=True)
FileOrId = Annotated[
    str, typer.Argument(metavar="FILE|ID", help="A YAML file with the fields of a replay, or the id of a replay.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a replay, as `lockstep replay show` lists them.")]


def _by() -> str:
    try:
        return getpass.getuser()
    except OSError:
        return "somebody without a name"


By = Annotated[str, typer.Option(help="Who, for the record.", default_factory=_by)]


@app.command()
@options_of(Request)
def plan(
    fields: dict[str, Any],
    file: Annotated[
        Path | None, typer.Argument(help="A YAML file with the fields of a replay; or give the options.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the request to this file, to be reviewed and run.")] = None,
) -> None:
    """Show what would be read and from where, which windows that touches, and what it costs. Nothing is written."""
    request = load(file) if file else parse(fields)
    console.print(plan_as_table(resolve(configuration.load(), request)))
    if save:
        save.write_text(yaml.safe_dump(request.as_dict(), sort_keys=False), encoding="utf-8")
        console.print(plain(f"Written to {save}: `lockstep replay run {save}`"))


@app.command("run")
def run_(what: FileOrId, by: By) -> None:
    """Plan, compute the shadow, and compare; then promote by rule, or wait for `lockstep replay promote ID`.

    A replay of the same file that is still open goes on where it was.
    """
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        replay = _replay_or_request(settings, what)
        if isinstance(replay, Request):
            replay = run.open_replay(spark, settings, replay, by, RUN_ID, run.identify(replay))
        console.print(plain(f"Replay {replay.id}: {replay.request.reason}"))
        console.print(plan_as_table(replay.plan))
        if replay.is_open:
            run.compute(spark, settings, replay.id, RUN_ID)
            run.compare(spark, settings, replay.id, RUN_ID)
        replay = record.find(settings, replay.id)
        if replay.compared:
            console.print(diff_as_table(replay.compared))
        if not replay.is_open:
            console.print(f"It is {replay.state}.")
        elif replay.request.approve == "by_rule":
            run.approve_by_rule(spark, settings, replay.id, RUN_ID)
            _print_versions("Promoted", run.promote(spark, settings, replay.id, RUN_ID).versions)
        else:
            console.print(f"It waits for you: `lockstep replay promote {replay.id}`, or discard it.")


@app.command()
def promote(replay: Id, by: By) -> None:
    """Approve the diff and promote the shadow: readers see all of it at once."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        if record.find(settings, replay).is_open:
            run.approve(spark, settings, replay, RUN_ID, by)
        _print_versions("Promoted", run.promote(spark, settings, replay, RUN_ID).versions)


@app.command()
def undo(replay: Id, by: By) -> None:
    """Put the interval back as it was before the promotion. What was written to other intervals since stays."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        undone = run.undo(spark, settings, replay, RUN_ID, by)
    _print_versions("Undone", undone.versions)
    for view, windows in undone.kept.items():
        if windows:
            console.print(f"{view}: {windows} windows have changed since the promotion, and stay as they are now.")


@app.command()
def discard(replay: Id, by: By) -> None:
    """Give a replay up before it is promoted: its shadows are removed, and its intervals are free."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        run.discard(spark, settings, replay, RUN_ID, by)
    console.print(f"Discarded: {replay}")


@app.command()
def show(
    replay: Annotated[str | None, typer.Argument(metavar="ID", help="All when none is named.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show a replay with its plan and diff, or list them all and the intervals that are held."""
    settings = configuration.load()
    replays = [record.find(settings, replay)] if replay else list(record.replays(settings))
    if as_json:
        typer.echo(json.dumps([_as_dict(r) for r in replays], indent=2))
    elif replay:
        _print_replay(replays[0])
    else:
        _print_list(settings, replays)


def _print_replay(replay: Replay) -> None:
    console.print(plain(f"Replay {replay.id} is {replay.state}: {replay.request.reason}"))
    console.print(plan_as_table(replay.plan))
    if replay.compared:
        console.print(diff_as_table(replay.compared))


def _print_list(settings: Settings, replays: list[Replay]) -> None:
    table = Listing("id", "state", "by", "layers", "from", "to", "reason")
    for replay in replays:
        request = replay.request
        span = [f"{moment:%F %T}" if moment else "-" for moment in (request.start, request.end)]
        table.add_row(replay.id, replay.state, replay.by, ", ".join(request.layers), *span, request.reason)
    console.print(table)
    for lock in intervals.holders(settings):
        console.print(
            f"{lock['table_name']} is held by the {lock['kind']} {lock['holder']} since {lock['since']:%F %T}"
        )
    for name, version in manifest.published(settings).items():
        console.print(f"Readers of {name} stay at version {version} until the replay that holds it goes on.")


def _print_versions(what: str, versions: Mapping[str, int]) -> None:
    console.print(f"{what}: {dict(versions)}")


def _replay_or_request(settings: Settings, what: str) -> Replay | Request:
    """A replay by its id; or the open replay of a file's request; or that request."""
    if not what.endswith((".yaml", ".yml")):
        return record.find(settings, what)
    request = load(Path(what))
    return next((r for r in record.replays(settings) if r.is_open and r.request == request), request)


def _as_dict(replay: Replay) -> dict[str, Any]:
    return {
        "id": replay.id,
        "by": replay.by,
        "state": replay.state,
        "request": replay.request.as_dict(),
        "stages": {stage: result.model_dump(mode="json") for stage, result in replay.results.items()},
    }
