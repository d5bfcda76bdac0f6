"""``lockstep replay``: redo history safely, with the words of a file, of options, or of the form in Airflow."""

import getpass
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.control import intervals
from lockstep.ledger.ranges import Range
from lockstep.replay import record, run
from lockstep.replay.plan import Plan
from lockstep.replay.plan import plan as resolve
from lockstep.replay.record import Replay
from lockstep.replay.request import Refused, Request, load, parse
from lockstep.serving import manifest
from lockstep.settings import Settings

app = typer.Typer(help="Redo history: plan, shadow, diff, promote, undo.", no_args_is_help=True)
console = Console(soft_wrap=True)
What = Annotated[
    str, typer.Argument(metavar="FILE|ID", help="A file like those in infra/replays/, or the id of a replay.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a replay, as `lockstep replay show` lists them.")]


def _by() -> str:
    try:
        return getpass.getuser()
    except OSError:
        return "somebody without a name"


By = Annotated[str, typer.Option(help="Who, for the record.", default_factory=_by)]


@app.command()
def plan(
    file: Annotated[
        Path | None, typer.Argument(help="A file like those in infra/replays/; or give the options.")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="First window (UTC, ISO).")] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of the interval, itself left out.")] = None,
    offsets: Annotated[str | None, typer.Option(help='Of one topic, as JSON: {"0": [5, 9]}.')] = None,
    versions: Annotated[str | None, typer.Option(help="layer.table@first..last.")] = None,
    topic: Annotated[list[str] | None, typer.Option(help="A stream; repeat it for more.")] = None,
    layer: Annotated[list[str] | None, typer.Option(help="bronze, silver or gold; repeat it for more.")] = None,
    view: Annotated[list[str] | None, typer.Option(help="A view; repeat it for more.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why, for the record.")] = None,
    late: Annotated[bool, typer.Option("--late", help="Merge the rows that came too late.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the diff, and keep nothing.")] = False,
    approve: Annotated[str | None, typer.Option(help="by_hand or by_rule.")] = None,
    max_changed_percent: Annotated[
        float | None, typer.Option(help="The rule: this share of the windows may change.")
    ] = None,
    max_changed_windows: Annotated[int | None, typer.Option(help="The rule: so many windows may change.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the request to this file, to be reviewed and run.")] = None,
) -> None:
    """Say what would be read, from where, which windows that touches, and what it costs; nothing is written."""
    given = {
        "from": start,
        "to": end,
        "offsets": _json(offsets),
        "versions": versions,
        "topics": topic,
        "layers": layer,
        "views": view,
        "reason": reason,
        "late": late,
        "dry_run": dry_run,
        "approve": approve,
        "max_changed_percent": max_changed_percent,
        "max_changed_windows": max_changed_windows,
    }
    request = load(file) if file else parse(given)
    _show_plan(resolve(configuration.load(), request))
    if save:
        import yaml

        save.write_text(yaml.safe_dump(request.as_dict(), sort_keys=False), encoding="utf-8")
        console.print(f"Written to {save}: `lockstep replay run {save}`")


@app.command("run")
def run_(what: What, by: By) -> None:
    """Plan, compute the shadow, and compare; then promote by rule, or wait for `lockstep replay promote ID`.

    A replay of the same file that is still open goes on where it was.
    """
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        replay = _resolve(settings, what)
        if isinstance(replay, Request):
            replay = run.open_(spark, settings, replay, by, "cli", run.identify(replay))
        console.print(f"Replay {replay.id}: {replay.request.reason}")
        _show_plan(replay.plan)
        if replay.is_open:
            run.compute(spark, settings, replay.id, "cli")
            run.compare(spark, settings, replay.id, "cli")
        replay = record.find(settings, replay.id)
        _show_diff(replay)
        if not replay.is_open:
            console.print(f"It is {replay.state}.")
        elif replay.request.approve == "by_rule":
            run.approve(spark, settings, replay.id, "cli", "rule")
            console.print(f"Promoted: {run.promote(spark, settings, replay.id, 'cli')['versions']}")
        else:
            console.print(f"It waits for you: `lockstep replay promote {replay.id}`, or discard it.")


@app.command()
def promote(replay: Id, by: By) -> None:
    """Approve the diff and promote the shadow: readers see all of it at once."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        found = record.find(settings, replay)
        if found.is_open:
            run.approve(spark, settings, replay, "cli", by)
        console.print(f"Promoted: {run.promote(spark, settings, replay, 'cli')['versions']}")


@app.command()
def undo(replay: Id, by: By) -> None:
    """Put the interval back as it was before the promotion; what came to other intervals since stays."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        detail = run.undo(spark, settings, replay, "cli", by)
    console.print(f"Undone: {detail['versions']}")
    for view, windows in detail["kept"].items():
        if windows:
            console.print(f"{view}: {windows} windows have changed since the promotion, and stay as they are now.")


@app.command()
def discard(replay: Id, by: By) -> None:
    """Give a replay up before it is promoted: its shadows go, and its intervals are free."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        run.discard(spark, settings, replay, "cli", by)
    console.print(f"Discarded: {replay}")


@app.command()
def show(
    replay: Annotated[str | None, typer.Argument(metavar="ID", help="All when none is named.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show a replay with its plan and diff, or list them all and the intervals that are held."""
    settings = configuration.load()
    found = [record.find(settings, replay)] if replay else list(record.replays(settings))
    if as_json:
        typer.echo(json.dumps([_as_dict(r) for r in found], indent=2))
        return
    if replay:
        console.print(f"Replay {replay} is {found[0].state}: {found[0].request.reason}")
        _show_plan(found[0].plan)
        _show_diff(found[0])
        return
    table = Table(box=None)
    for column in ("id", "state", "by", "layers", "from", "to"):
        table.add_column(column, no_wrap=True)
    table.add_column("reason")
    for r in found:
        span = [f"{m:%F %T}" if m else "-" for m in (r.request.start, r.request.end)]
        table.add_row(r.id, r.state, r.by, ", ".join(r.request.layers), *span, r.request.reason)
    console.print(table)
    for held in intervals.holders(settings):
        console.print(
            f"{held['table_name']} is held by the {held['kind']} {held['holder']} since {held['since']:%F %T}"
        )
    for name, version in manifest.published(settings).items():
        console.print(f"Readers of {name} stay at version {version} until the replay that holds it goes on.")


def _resolve(settings: Settings, what: str) -> Replay | Request:
    """A replay by its id, or the open one of a file's request, or that request."""
    if not what.endswith((".yaml", ".yml")):
        return record.find(settings, what)
    request = load(Path(what))
    return next((r for r in record.replays(settings) if r.is_open and r.request == request), request)


def _json(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except json.JSONDecodeError:
        raise Refused("The option --offsets is not JSON. Nothing was read.") from None


def _as_dict(replay: Replay) -> dict[str, Any]:
    return {"id": replay.id, "by": replay.by, "state": replay.state, "request": replay.request.as_dict()} | {
        "stages": {stage: dict(detail) for stage, detail in replay.stages.items()}
    }


def _show_plan(plan: Plan) -> None:
    table = Table("stream", "is read from", "offsets [start, end)", "rows", "MB", "arrived (UTC)", box=None)
    for part in plan.parts:
        when = f"{part.arrived[0]:%F %T} to {part.arrived[1]:%F %T}" if part.arrived else "-"
        table.add_row(part.stream, part.source, _ranges(part.ranges), f"{part.rows:,}", f"{part.size / 1e6:.1f}", when)
        if part.missing:
            table.add_row("", "Kafka, by its time index", _ranges(part.missing), "", "", "not in bronze yet")
    if plan.parts:
        console.print(table)
    for target in plan.targets:
        span = f"[{target.low:%F %T}, {target.high:%F %T})" if target.low and target.high else "what these rows touch"
        windows = f", at most {target.windows:,} windows" if target.windows is not None else ""
        console.print(f"gold.{target.view}: {span}{windows}")
    if not plan.parts and not plan.targets:
        console.print("Nothing: no table has anything of what was asked for.")
    cost = f"about {plan.seconds:.0f} s for the shadow" if plan.seconds else "no replay like it was timed yet"
    console.print(f"Cost: {plan.rows:,} rows, {sum(p.size for p in plan.parts) / 1e6:.1f} MB; {cost}.")


def _ranges(ranges: tuple[Range, ...]) -> str:
    return "  ".join(f"{r.partition}: [{r.start:,}, {r.end:,})" for r in ranges if r.size) or "-"


def _show_diff(replay: Replay) -> None:
    if "compared" not in replay.stages:
        return
    table = Table("table", "windows", "equal", "changed", "added", "removed", box=None)
    tables = replay.stages["compared"]["tables"]
    for name, found in tables.items():
        table.add_row(name, *(f"{found[kind]:,}" for kind in ("windows", "equal", "changed", "added", "removed")))
    console.print(table)
    for name, found in tables.items():
        for sample in found["samples"]:
            console.print(f"  {name} {sample}", markup=False)
    for name, failed in replay.stages["compared"]["checks"].items():
        for reason in failed:
            console.print(f"  {name} fails its suite: {reason}", markup=False)
