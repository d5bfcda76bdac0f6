"""``lockstep airflow|dbt|kafka|psql …`` run the real tools on this stack, and ``lockstep env`` is for a shell of one's own."""

import os
import shlex
from collections.abc import Callable, Sequence

import typer

from lockstep import settings
from lockstep.settings import Settings
from lockstep.stack import tools
from lockstep.stack.stack import Stack

# All arguments are the tool's, also --help.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _command(tool: Callable[[Settings, Sequence[str]], tools.Tool]) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command(context_settings=_PASS_ON, help=tool.__doc__)
    def run(ctx: typer.Context) -> None:
        chosen = tool(_settings(), ctx.args)
        os.execvpe(chosen.argv[0], chosen.argv, {**os.environ, **chosen.env})

    return app


def _settings() -> Settings:
    return Stack(settings.load()).settings


airflow, dbt, kafka, psql = (_command(tool) for tool in (tools.airflow, tools.dbt, tools.kafka, tools.psql))


def env() -> None:
    """Print the variables with which Airflow, dbt, psql and others find this stack: eval "$(lockstep env)".

    They contain secrets.
    """
    found = tools.variables(_settings())
    path = found.pop("PATH")
    for name, value in sorted(found.items()):
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(path)}:"$PATH"')
