"""``lockstep``, the command line. A command's module is imported when the command runs, because imports take time."""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lockstep import project, settings
from lockstep.errors import LockstepError
from lockstep.settings import environment_name

# Where each command is: a function, or a Typer app with commands of its own.
_COMMANDS = {
    "up": "lockstep.cli.stack:up",
    "down": "lockstep.cli.stack:down",
    "plan": "lockstep.cli.deploy:show_plan",
    "apply": "lockstep.cli.deploy:apply",
    "diff": "lockstep.cli.environments:diff",
    "remove": "lockstep.cli.environments:remove",
    "status": "lockstep.cli.status:status",
    "logs": "lockstep.cli.stack:logs",
    "doctor": "lockstep.cli.stack:diagnose",
    "reset": "lockstep.cli.stack:reset",
    "jars": "lockstep.cli.stack:fetch_jars",
    "snapshot": "lockstep.cli.snapshot:snapshot",
    "cdc": "lockstep.cli.cdc:app",
    "changelog": "lockstep.cli.changelog:app",
    "init": "lockstep.cli.init:init",
    "new": "lockstep.cli.new:app",
    "check": "lockstep.cli.check:check",
    "compatible": "lockstep.cli.compatible:compatible",
    "describe": "lockstep.cli.describe:describe",
    "ledger": "lockstep.cli.ledger:app",
    "reconcile": "lockstep.cli.reconcile:reconcile",
    "quality": "lockstep.cli.quality:app",
    "quarantine": "lockstep.cli.quarantine:app",
    "serving": "lockstep.cli.serving:serving",
    "wait": "lockstep.cli.wait:wait",
    "commands": "lockstep.cli.commands:app",
    "replay": "lockstep.cli.replay:app",
    "checkpoints": "lockstep.cli.checkpoints:app",
    "erase": "lockstep.cli.erase:erase",
    "leases": "lockstep.cli.leases:app",
    "alerts": "lockstep.cli.alerts:app",
    "sql": "lockstep.cli.sql:sql",
    "asof": "lockstep.cli.asof:asof",
    "spark-sql": "lockstep.cli.tools:spark_sql",
    "airflow": "lockstep.cli.tools:airflow",
    "dbt": "lockstep.cli.tools:dbt",
    "kafka": "lockstep.cli.tools:kafka",
    "psql": "lockstep.cli.tools:psql",
    "env": "lockstep.cli.tools:env",
}
# The commands that need none of the platform's dependencies.
_AUTHORING = ("new",)
# An environment has a lake and a control database, and nothing else. The last ones only look at the project's files.
_OF_ENVIRONMENTS = ("apply", "diff", "remove", "sql", "psql", "init", "new", "check", "compatible", "describe")
_ONLY_OF_ENVIRONMENTS = ("diff", "remove")


class _Lazy(TyperGroup):
    """The platform's commands, and those of the project: ``app`` in its ``<package>/cli.py``."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        # Only the platform's dependencies have Airflow.
        if not find_spec("airflow"):
            return [*_AUTHORING]
        return [*_COMMANDS, *_project_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name in _COMMANDS:
            command = _command(_COMMANDS[cmd_name])
            command.name = cmd_name
            return command
        return _project_commands().get(cmd_name)


def _command(target: str) -> Any:
    module, _, name = target.partition(":")
    try:
        command: Any = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise LockstepError(
            f"This command needs the package {error.name}: install the platform, `pip install 'lockstep[platform]'`."
        ) from error
    if not isinstance(command, typer.Typer):
        function, command = command, typer.Typer()
        command.command()(function)
    return typer.main.get_command(command)


def _project_commands() -> dict[str, Any]:
    try:
        package = project.package()
    except project.ProjectInvalid:
        return {}
    if not (project.folder(".") / "cli.py").is_file():
        return {}
    group = typer.main.get_command(import_module(f"{package}.cli").app)
    return dict(group.commands) if isinstance(group, TyperGroup) else {}


app = typer.Typer(cls=_Lazy, no_args_is_help=True, pretty_exceptions_enable=False, help="Lockstep, the data platform.")


def _is_a_name(env: str) -> str:
    try:
        return environment_name(env)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def _root(
    ctx: typer.Context,
    env: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            callback=_is_a_name,
            help="The environment that is meant, also LOCKSTEP_ENV: a sample of production's records in a lake of its own, in "
            f"batch only. For {', '.join(_OF_ENVIRONMENTS[:5])}.",
        ),
    ] = "",
) -> None:
    """Live streams and scheduled rollups, proven equal."""
    command = ctx.invoked_subcommand
    if env:
        # All that reads the settings finds it there.
        os.environ["LOCKSTEP_ENV"] = env
    current = settings.load().env
    if current and command not in _OF_ENVIRONMENTS:
        raise LockstepError(
            f"`lockstep {command}` is of production, and the environment {current} is meant: an environment has neither services "
            "nor live queries nor DAGs. Leave --env and LOCKSTEP_ENV out."
        )
    if not current and command in _ONLY_OF_ENVIRONMENTS:
        raise LockstepError(f"`lockstep {command}` is of an environment: name it, `lockstep --env NAME {command}`.")


def main() -> None:
    """Run the command. An error of the platform is printed without a traceback."""
    try:
        app()
    except LockstepError as error:
        sys.exit(f"lockstep: {error}")


if __name__ == "__main__":
    main()
