"""dbt by hand: any of its commands, on the project's models and the warm server, in this process.

dbt takes most options from variables too (``DBT_STATE``), so what Lockstep sets is a default: the caller's options and variables
win.
"""

import getpass
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from lockstep.control.leases import lease
from lockstep.errors import LockstepError
from lockstep.marts import artefacts, published
from lockstep.marts.build import USER_METADATA
from lockstep.marts.dbt_project import dbt_on, environment, locations, variables
from lockstep.marts.parsed import views_of
from lockstep.version import code_version

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# The target of the profile, where none is named.
DEFAULT_TARGET = "dev"
# The commands that write models, and the others that ask the server something.
WRITE = {"build", "clone", "retry", "run", "run-operation", "seed", "snapshot"}
ASK = {"compile", "debug", "docs", "show", "source", "test"}
OFFLINE = {"clean", "deps", "init", "list", "ls", "parse"}
# Options that say themselves what is read.
_PARTS = ("--sample", "--empty")
_EXTENT = (*_PARTS, "--event-time-start", "--event-time-end")


def needs_server(arguments: Sequence[str]) -> bool:
    """Whether dbt asks the server something for these arguments."""
    return _command(arguments) in WRITE | ASK and not {"--help", "-h"} & {*arguments}


def target(arguments: Sequence[str]) -> str:
    """The target of the arguments, else of ``DBT_TARGET``, else ``dev``."""
    for option, value in pairwise(arguments):
        if option in ("--target", "-t"):
            return value
    given = (argument.partition("=")[2] for argument in arguments if argument.startswith("--target="))
    return next(given, os.environ.get("DBT_TARGET") or DEFAULT_TARGET)


def as_variables(options: Mapping[str, str]) -> dict[str, str]:
    """Options of dbt, such as ``--project-dir``, as the variables of their names."""
    return {f"DBT_{option.strip('-').replace('-', '_').upper()}": value for option, value in options.items()}


def defaults(settings: "Settings", arguments: Sequence[str]) -> dict[str, str]:
    """The variables of dbt's options: where the project is, where dbt writes, and what a developer's models read."""
    chosen = target(arguments)
    own = str(artefacts.directory(settings, chosen))
    found = {**locations(settings), "--target-path": own, "--log-path": own}
    production = artefacts.directory(settings)
    if chosen != artefacts.PRODUCTION and (production / artefacts.MANIFEST).exists():
        # Models that the developer has not built are read from production.
        found |= {"--state": str(production), "--defer": "true"}
    if chosen == DEFAULT_TARGET and settings.dbt_sample_days and not _says_extent(arguments):
        found["--sample"] = f"{settings.dbt_sample_days} days"
    return as_variables(found)


def _says_extent(arguments: Sequence[str]) -> bool:
    return any(argument.startswith(_EXTENT) for argument in arguments)


def run(spark: "SparkSession | None", settings: "Settings", arguments: Sequence[str]) -> int:
    """Run dbt with these arguments; dbt's exit code: 0 done, 1 a model or a test failed, 2 it could not run.

    What everybody reads is written under the lease of the marts, and its commits say who has written it. Readers see it when the
    command has succeeded; else it is taken back.

    Args:
        spark: a session, for a command that asks the server something.

    Raises:
        LockstepError: it would replace what everybody reads by a sample, or build on what was taken back.
        LeaseHeld: the marts are being built.
    """
    from dbt.cli.main import dbtRunner

    is_of_production = _command(arguments) in WRITE and target(arguments) == artefacts.PRODUCTION
    if is_of_production and (os.environ.get("DBT_SAMPLE") or any(a.startswith(_PARTS) for a in arguments)):
        raise LockstepError(
            "Target prod would get a sample in the place of all rows: leave out --sample, --empty and DBT_SAMPLE, or the target."
        )
    if is_of_production and _command(arguments) == "retry":
        raise LockstepError(
            "Target prod has taken back all that the failed command wrote, so that its rest alone cannot be built: run it again "
            "as a whole."
        )
    more = {name: value for name, value in defaults(settings, arguments).items() if name not in os.environ}
    with ExitStack() as block:
        if spark is None:
            block.enter_context(environment(variables(settings) | more))
        else:
            if is_of_production:
                block.enter_context(_writing(spark, settings))
            block.enter_context(dbt_on(spark, settings, more))
        result = dbtRunner().invoke([*arguments])
        if spark and is_of_production:
            _finish(spark, settings, result)
    if target(arguments) == artefacts.PRODUCTION:
        artefacts.keep(settings, artefacts.directory(settings))
    if result.exception:
        print(result.exception)
        return 2
    return 0 if result.success else 1


@contextmanager
def _writing(spark: "SparkSession", settings: "Settings") -> Iterator[None]:
    record: Mapping[str, str] = {"writer": published.WRITER, "run_id": _user(), "code_version": code_version()}
    with lease(settings, "marts", _user()):
        published.begin(spark, settings, _user())
        spark.conf.set(USER_METADATA, json.dumps(record, sort_keys=True))
        yield


def _finish(spark: "SparkSession", settings: "Settings", result: "dbtRunnerResult") -> None:
    spark.conf.unset(USER_METADATA)
    if result.success:
        results = getattr(result.result, "results", ())
        published.publish(spark, settings, _user(), views_of(results), are_all=False)
    else:
        published.take_back(spark, settings, _user())


def _user() -> str:
    return f"by {getpass.getuser()}"


def _command(arguments: Sequence[str]) -> str:
    return next((argument for argument in arguments if argument in WRITE | ASK | OFFLINE), "")
