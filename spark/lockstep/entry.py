"""The command ``lockstep``: all of it where the platform is installed, else what people need who write streams and views."""

import sys
from importlib.util import find_spec

import typer

from lockstep.errors import LockstepError
from lockstep.new import commands as new


def main() -> None:
    """Run the command that the process was started with."""
    # Airflow is in the dependencies of the platform only.
    if find_spec("airflow"):
        from lockstep.cli import app

        run(app)
    else:
        run(_authoring())


def run(app: typer.Typer) -> None:
    """Run a command of the app; a LockstepError is printed in its own words, without a traceback."""
    try:
        app()
    except LockstepError as error:
        sys.exit(f"lockstep: {error}")


def _authoring() -> typer.Typer:
    """The commands that need none of the platform's dependencies."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Write streams and views. All other commands need the platform: install lockstep[platform,shop].",
    )
    app.add_typer(new.app, name="new")
    return app
