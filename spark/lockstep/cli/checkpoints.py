"""``lockstep checkpoints``: look after the checkpoints of the live queries."""

import getpass
import json
from collections.abc import Sequence
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.checkpoints import actions, form, inspection
from lockstep.checkpoints.compatible import Verdict
from lockstep.checkpoints.fields import Action
from lockstep.checkpoints.overview import overview
from lockstep.checkpoints.savepoints import list_savepoints
from lockstep.checkpoints.verify import Whole
from lockstep.definition.registry import chosen

app = typer.Typer(help="The checkpoints of the live queries.", no_args_is_help=True)
Query = Annotated[str, typer.Argument(help="The view whose query is meant.")]
Queries = Annotated[str, typer.Argument(help="One query; all when none is named.")]
Reason = Annotated[str, typer.Option(help="Why, for the record; any text.")]
By = Annotated[str, typer.Option(help="Who; you, when not named.")]


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List every query: generation, last batch, offsets and lag, watermark, state, age; and its savepoints."""
    settings = configuration.load()
    overviews = overview(settings, chosen(settings.views))
    if as_json:
        typer.echo(json.dumps([vars(query) for query in overviews], default=str, indent=2))
        return
    for query in overviews:
        typer.echo(str(query))
        if names := [savepoint.name for savepoint in list_savepoints(settings, query.query)]:
            typer.echo(f"  savepoints {', '.join(names)}")


@app.command()
def verify(query: Queries = "") -> None:
    """Verify every file that a restart needs; exit code 1 if any is missing, cut short or changed."""
    outcomes = _carry_out(Action.VERIFY, query=query)
    if not all(isinstance(outcome, Whole) for outcome in outcomes):
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
        _carry_out(Action.INSPECT, query=query)
        return
    view = form.request({"action": Action.INSPECT, "query": query}).one_query
    settings = configuration.load()
    with connect(settings, "checkpoints") as spark:
        for row in inspection.read_state(spark, settings, view, operator, key, limit):
            typer.echo(json.dumps(row))


@app.command()
def savepoint(query: Query, name: Annotated[str, typer.Argument(help="What to call it.")], by: By = "") -> None:
    """Copy the query's checkpoint and table under a name; the query may run meanwhile."""
    _carry_out(Action.SAVEPOINT, query=query, name=name, by=by or getpass.getuser())


@app.command()
def restore(
    query: Query, name: Annotated[str, typer.Argument(help="The savepoint.")], reason: Reason, by: By = ""
) -> None:
    """Start the query's next generation from a savepoint, with its table as it was then."""
    _carry_out(Action.RESTORE, query=query, name=name, reason=reason, by=by or getpass.getuser())


@app.command()
def reset(
    query: Query,
    to: Annotated[str, typer.Option(help="earliest, gold, a time with its zone, or [topic:]partition=offset,…")],
    reason: Reason,
    by: By = "",
) -> None:
    """Start the query's next generation: it is computed again from a point of its topics, or goes on from gold."""
    _carry_out(Action.RESET, query=query, to=to, reason=reason, by=by or getpass.getuser())


@app.command()
def fork(
    query: Query, view: Annotated[str, typer.Argument(help="The changed view.")], reason: Reason, by: By = ""
) -> None:
    """Let a changed view continue from the query's position, beside it, with a table of its own."""
    _carry_out(Action.FORK, query=query, name=view, reason=reason, by=by or getpass.getuser())


@app.command()
def share(reason: Reason, by: By = "") -> None:
    """Let all views that may share jobs do so again, those that have jobs of their own too; each goes on from gold."""
    _carry_out(Action.SHARE, reason=reason, by=by or getpass.getuser())


@app.command("compatible")
def compatible_(query: Queries = "") -> None:
    """Say before a deployment whether the query as it is now can resume, and why not; exit code 1 if not."""
    outcomes = _carry_out(Action.COMPATIBLE, query=query)
    if any(isinstance(outcome, Verdict) and not outcome.resumes for outcome in outcomes):
        raise typer.Exit(1)


def _carry_out(action: Action, **values: str) -> Sequence[actions.Outcome]:
    """Carry out the action, and print its outcomes."""
    request = form.request({"action": action, **values})
    outcomes = actions.carry_out(configuration.load(), request)
    for outcome in outcomes:
        typer.echo(str(outcome))
    return outcomes
