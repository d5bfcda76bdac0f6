"""``lockstep checkpoints``: look after the checkpoints of the live queries."""

import getpass
import json
from typing import Annotated, Any

import typer

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.checkpoints import form, inspection
from lockstep.checkpoints import overview as looking
from lockstep.checkpoints.errors import Refused
from lockstep.checkpoints.savepoints import saved
from lockstep.definition.registry import chosen

app = typer.Typer(help="The checkpoints of the live queries.", no_args_is_help=True)
Query = Annotated[str, typer.Argument(help="The view whose query is meant.")]
Queries = Annotated[str, typer.Argument(help="One query; all when none is named.")]
Why = Annotated[str, typer.Option(help="Why, for the record.")]
By = Annotated[str, typer.Option(help="Who; you, when not named.")]


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List every query: generation, last batch, offsets and lag, watermark, state, age; and its savepoints."""
    settings = configuration.load()
    found = looking.overview(settings, chosen(settings.views))
    if as_json:
        typer.echo(json.dumps([vars(one) for one in found], default=str, indent=2))
        return
    for one in found:
        typer.echo(str(one))
        if names := [savepoint.name for savepoint in saved(settings, one.query)]:
            typer.echo(f"  savepoints {', '.join(names)}")


@app.command()
def verify(query: Queries = "") -> None:
    """Hold every file that a restart needs against what it was; exit code 1 if any is missing, holed or changed."""
    lines = _do(action="verify", query=query)
    if any(not line.startswith("whole") for line in lines):
        raise typer.Exit(1)


@app.command()
def inspect(
    query: Query,
    operator: Annotated[int | None, typer.Option(min=0, help="Show this operator's state.")] = None,
    key: Annotated[str, typer.Option(help="Only keys whose JSON contains this.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000)] = 20,
) -> None:
    """Show the query's state stores, or what one of its operators holds, by key."""
    if operator is None:
        _do(action="inspect", query=query)
        return
    asked = form.request({"action": "inspect", "query": query})
    settings = configuration.load()
    if asked.query is None:
        raise Refused("inspect is for one query: name it.")
    with connect(settings, "checkpoints") as spark:
        for row in inspection.look(spark, settings, asked.query, operator, key, limit):
            typer.echo(json.dumps(row))


@app.command()
def savepoint(query: Query, name: Annotated[str, typer.Argument(help="What to call it.")], by: By = "") -> None:
    """Copy what the query's last batch needs under a name; the query may run on."""
    _do(action="savepoint", query=query, name=name, by=by or getpass.getuser(), why="savepoint")


@app.command()
def restore(query: Query, name: Annotated[str, typer.Argument(help="The savepoint.")], why: Why, by: By = "") -> None:
    """Let the query's next generation go on from a savepoint, with its table as it was then."""
    _do(action="restore", query=query, name=name, why=why, by=by or getpass.getuser())


@app.command()
def reset(
    query: Query,
    to: Annotated[str, typer.Option(help="earliest, a time with its zone, or [topic:]partition=offset,…")],
    why: Why,
    by: By = "",
) -> None:
    """Begin the query's next generation: computed again from a point of its topics."""
    _do(action="reset", query=query, to=to, why=why, by=by or getpass.getuser())


@app.command()
def fork(query: Query, view: Annotated[str, typer.Argument(help="The changed view.")], why: Why, by: By = "") -> None:
    """Let a changed view go on from the query's point, beside it, with a table of its own."""
    _do(action="fork", query=query, name=view, why=why, by=by or getpass.getuser())


@app.command("compatible")
def compatible_(query: Queries = "") -> None:
    """Say before a deployment whether the query as it is now can resume, and why not; exit code 1 if not."""
    lines = _do(action="compatible", query=query)
    if any(line.startswith("INCOMPATIBLE") for line in lines):
        raise typer.Exit(1)


def _do(**said: Any) -> list[str]:
    asked = form.request(said)
    lines = form.carry_out(configuration.load(), asked)
    for line in lines:
        typer.echo(line)
    return lines
