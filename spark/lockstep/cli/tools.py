"""``lockstep airflow|dbt|kafka|psql|spark-sql …`` run the real tools on this stack; ``lockstep env`` is for one's own shell."""

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import typer

from lockstep import settings
from lockstep.catalog import connect
from lockstep.marts import by_hand
from lockstep.settings import Settings
from lockstep.stack import tools
from lockstep.stack.stack import Stack

# All arguments are the tool's, also --help.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _command(
    tool: Callable[[Settings, Sequence[str]], tools.Tool], before: Callable[[Settings], None] | None = None
) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command(context_settings=_PASS_ON, help=tool.__doc__)
    def run(ctx: typer.Context) -> None:
        current = _settings()
        chosen = tool(current, ctx.args)
        if before:
            before(current)
        os.execvpe(chosen.argv[0], chosen.argv, {**os.environ, **chosen.env})

    return app


def _settings() -> Settings:
    return Stack(settings.load()).settings


def _register(current: Settings) -> None:
    """Have the server know the names of the tables: its catalog is in memory, and no client of Lockstep's may have come yet."""
    with connect(current, "spark-sql"):
        pass


airflow, kafka, psql = (_command(tool) for tool in (tools.airflow, tools.kafka, tools.psql))
spark_sql = _command(tools.spark_sql, _register)
dbt = typer.Typer(add_completion=False)


@dbt.command(context_settings=_PASS_ON)
def _dbt(ctx: typer.Context) -> None:
    """dbt, on the project's models and the Spark server. It writes into a schema of your own, unless `--target prod` is given."""
    current = _settings()
    with ExitStack() as block:
        spark = block.enter_context(connect(current, "dbt")) if by_hand.needs_server(ctx.args) else None
        raise typer.Exit(by_hand.run(spark, current, ctx.args))


def env() -> None:
    """Print the variables with which Airflow, dbt, psql and others find this stack: eval "$(lockstep env)".

    They contain secrets.
    """
    found = tools.variables(_settings())
    path = found.pop("PATH")
    for name, value in sorted(found.items()):
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(path)}:"$PATH"')
