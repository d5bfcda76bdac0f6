"""``lockstep new``: a stream or a view of your own, ready to be changed."""

from pathlib import Path
from typing import Annotated

import typer

from lockstep import project, settings
from lockstep.new import make
from lockstep.new.render import SOURCES
from lockstep.settings import Settings

app = typer.Typer(help="Make a stream or a view of your own from a template.", no_args_is_help=True)
_COLUMNS = ["event_id:STRING", "event_time:TIMESTAMP", "user_id:STRING"]


@app.command()
def stream(
    name: Annotated[str, typer.Argument(help="Its name, such as returns.")],
    kind: Annotated[str, typer.Option(help="events, or changes of a PostgreSQL table.")] = "events",
    column: Annotated[list[str], typer.Option(help="A column as name:TYPE; give one for each column.")] = _COLUMNS,
    id_column: Annotated[str, typer.Option("--id", help="The column that identifies an event.")] = "event_id",
    key: Annotated[str, typer.Option(help="The column that the records are keyed by.")] = "user_id",
    time: Annotated[str, typer.Option(help="The column that says when it happened.")] = "event_time",
    database: Annotated[str, typer.Option(help="Of changes: a source database of the setting databases.")] = "",
    form: Annotated[str, typer.Option("--format", help="How values are written: json, avro or protobuf.")] = "json",
) -> None:
    """Make a stream: its contract, its schema if it needs one, its suite and its dbt source."""
    found = _settings()
    sources = _lines(found, SOURCES)
    new = make.Stream(name, kind, make.columns(column), id_column, key, time, form, database)
    _report(found, make.stream(found, new), sources)


@app.command()
def view(
    name: Annotated[str, typer.Argument(help="Its name, such as returns_per_minute.")],
    reads: Annotated[str, typer.Option("--input", help="The stream that it reads.")],
    keyed: Annotated[bool, typer.Option("--keyed", help="A state machine per key, not a window.")] = False,
) -> None:
    """Make a view: its module, its suite, its dbt source, its oracle and its unit test."""
    found = _settings()
    sources = _lines(found, SOURCES)
    _report(found, make.view(found, name, reads, keyed), sources)


def _settings() -> Settings:
    """The settings of the project; raises ProjectInvalid where there is none."""
    project.package()
    return settings.load()


def _report(found: Settings, paths: list[Path], sources: int) -> None:
    """Name the files and how many lines were written.

    Args:
        sources: how many lines dbt's sources had before: they only get more, and the other files are new.
    """
    for path in paths:
        size = _lines(found, path) - (sources if path == SOURCES else 0)
        typer.echo(f"{size:4} lines  {path}")


def _lines(found: Settings, path: Path) -> int:
    file = found.project / path
    return len(file.read_text().splitlines()) if file.exists() else 0
