"""``lockstep init``: an empty project that works."""

from pathlib import Path
from typing import Annotated

import typer

from lockstep.new import init as project


def init(
    directory: Annotated[Path, typer.Argument(help="Where the project is to be; empty, or not there yet.")],
    package: Annotated[str, typer.Option(help="Its Python package; by default the directory's name.")] = "",
) -> None:
    """Make an empty project: folders for streams, views, suites and models, and a test of its views."""
    package, files = project.project(directory, package)
    for file in files:
        typer.echo(f"  {file}")
    typer.echo(f"{directory} is a project now, with the package {package}. Its README.md says what to do next.")
