"""``lockstep new``: a stream or a view of your own, ready to be changed."""

from pathlib import Path
from typing import Annotated

import typer

from lockstep import settings
from lockstep.new import make

app = typer.Typer(help="Make a stream or a view of your own from a template.", no_args_is_help=True)


@app.command()
def stream(
    name: Annotated[str, typer.Argument(help="Its name, such as returns.")],
    kind: Annotated[str, typer.Option(help="events, or changes of a PostgreSQL table.")] = "events",
    schema: Annotated[str, typer.Option(help="Its columns, as Spark DDL.")] = (
        "event_id STRING, event_time TIMESTAMP, user_id STRING"
    ),
    id_column: Annotated[str, typer.Option("--id", help="The column that identifies an event.")] = "event_id",
    key: Annotated[str, typer.Option(help="The column that the records are keyed by.")] = "user_id",
    time: Annotated[str, typer.Option(help="The column that says when it happened.")] = "event_time",
) -> None:
    """Make a stream: its contract, its suite and its dbt source."""
    _tell(make.stream(settings.load(), make.Stream(name, kind, schema, id_column, key, time)))


@app.command()
def view(
    name: Annotated[str, typer.Argument(help="Its name, such as returns_per_minute.")],
    reads: Annotated[str, typer.Option("--input", help="The stream that it reads.")] = "page_views",
    keyed: Annotated[bool, typer.Option("--keyed", help="A state machine per key, not a window.")] = False,
) -> None:
    """Make a view: its module, its suite, its dbt source, its oracle and its unit test."""
    _tell(make.view(settings.load(), name, reads, keyed))


def _tell(paths: list[Path]) -> None:
    for path in paths:
        size = 2 if path == make.SOURCES else len((settings.load().project / path).read_text().splitlines())
        typer.echo(f"{size:4} lines  {path}")
