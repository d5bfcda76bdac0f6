"""The project's dbt models: parsed once, and run in this process, on the caller's session, for everybody (target ``prod``).

What parsing gives is kept in ``<home>/dbt`` under a digest of the project's files. Views are created when that digest is new.
The models are the project's. The profile, and the macros that Lockstep's dbt has, are the platform's (``lockstep/dbt``).
"""

import hashlib
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lockstep import atomic_files
from lockstep.control.leases import lease
from lockstep.errors import LockstepError
from lockstep.failpoints import failpoint
from lockstep.marts import artefacts
from lockstep.marts.listener import listener
from lockstep.marts.parsed import absent, downstream, sources_of
from lockstep.marts.progress import Progress
from lockstep.resources import resource
from lockstep.session import remote

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunner, dbtRunnerResult
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# The platform's macros and profile.
_PLATFORM = resource("dbt")
# What only a correction ends: SQL with a wrong syntax (42601), column (42703), aggregation (42803) or type (42K09), a value that
# cannot be computed (22...), and what dbt itself refuses. A server that has just started lacks tables, views and schemas.
_LASTING = re.compile(r"SQLSTATE: (22|42601|42703|42803|42K09)|Compilation Error")
# dbt reads some options from the environment, which all threads of the process share.
_ENVIRONMENT = threading.Lock()


class MartsFailed(LockstepError):
    """dbt could not build a mart, or a mart does not pass its tests.

    Args:
        failed: by model or test, what dbt says of it.
        lasting: it fails again, until somebody corrects a model or rows.
    """

    def __init__(self, message: str, failed: Mapping[str, str] | None = None, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.failed = failed or {}
        self.lasting = lasting


def directory(settings: "Settings") -> Path:
    """The directory of the project's dbt models."""
    return settings.project / "dbt"


def has_marts(settings: "Settings") -> bool:
    """Whether the project has models of marts."""
    return any((directory(settings) / "models" / "marts").rglob("*.sql"))


def sources(spark: "SparkSession", settings: "Settings") -> list[str]:
    """The tables (``layer.name``) whose new rows change a table of dbt's, sorted. Views follow their tables by themselves."""
    with dbt_on(spark, settings):
        return sources_of(manifest_of(settings, project_digest(settings)))


def project_digest(settings: "Settings") -> str:
    """16 hex digits that change with any file of the dbt project or of the platform's macros, and with the lake."""
    digest = hashlib.sha256(settings.lake.encode())
    for root in (directory(settings), _PLATFORM):
        for file in sorted(f for f in root.rglob("*") if f.suffix in {".sql", ".yml"}):
            digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def variables(settings: "Settings") -> dict[str, str]:
    """The variables with which dbt finds the server, the lake and the platform's macros. They contain the token, if any."""
    return {
        "SPARK_REMOTE": remote(settings, "dbt"),
        "LOCKSTEP_LAKE": settings.lake,
        "LOCKSTEP_DBT": str(_PLATFORM),
        "LOCKSTEP_DBT_SCHEMA": settings.dbt_schema,
        "LOCKSTEP_DBT_THREADS": str(settings.background_threads),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def locations(settings: "Settings") -> dict[str, str]:
    """dbt's options that say where the project and its profile are."""
    return {"--project-dir": str(directory(settings)), "--profiles-dir": str(_PLATFORM)}


@contextmanager
def dbt_on(spark: "SparkSession", settings: "Settings", more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Make dbt's session method find this session: it takes the active or default one of the process.

    Args:
        more: variables that dbt reads too.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    with environment(variables(settings) | dict(more or {})), warnings.catch_warnings():
        ConnectSession._set_default_and_active_session(cast("ConnectSession", spark))
        # The session method asks for Hive support, which a client cannot switch on.
        warnings.filterwarnings("ignore", message=".*spark.sql.catalogImplementation.*")
        yield


@contextmanager
def environment(given: Mapping[str, str]) -> Iterator[None]:
    """Set these variables of the process until the block ends. One thread at a time; other variables are left alone."""
    with _ENVIRONMENT:
        before = {name: os.environ.get(name) for name in given}
        os.environ |= given
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def manifest_of(settings: "Settings", digest: str) -> "Manifest":
    """What dbt has parsed of the project's files.

    Args:
        digest: of the files (:func:`project_digest`).

    Raises:
        MartsFailed: the project cannot be parsed.
    """
    from dbt.cli.main import dbtRunner
    from dbt.contracts.graph.manifest import Manifest
    from dbt.parser.manifest import extended_mashumaro_encoder, extended_mashumuro_decoder

    file = settings.home / "dbt" / f"{digest}.msgpack"
    if file.exists():
        return Manifest.from_msgpack(file.read_bytes(), decoder=extended_mashumuro_decoder)
    result = invoke(settings, dbtRunner(), "parse")
    if not isinstance(result.result, Manifest):
        raise MartsFailed(f"The dbt project in {directory(settings)} cannot be parsed: {result.exception}")
    atomic_files.replace(file, result.result.to_msgpack(extended_mashumaro_encoder), artefacts.MODE)
    return result.result


@contextmanager
def up_to_date_views(spark: "SparkSession", settings: "Settings", manifest: "Manifest", digest: str) -> Iterator[bool]:
    """Create the views that tables are built from, if the project or one of their sources is new; whether none was missing.

    If some were, the block must create those that read tables. Nobody else does meanwhile: Spark fails if two create one view.
    """
    if _are_current(spark, settings, manifest, digest):
        yield True
        return
    with lease(settings, "staging", "dbt"):
        if _are_current(spark, settings, manifest, digest):
            yield True
            return
        lacking = absent(settings, manifest)
        after_tables = ("--exclude", "config.materialized:incremental+", "config.materialized:table+")
        run(settings, manifest, "run", "--select", "config.materialized:view", *after_tables, *downstream(lacking))
        yield False
        atomic_files.replace(_marker(settings, digest), "\n".join(lacking).encode(), artefacts.MODE)


def _are_current(spark: "SparkSession", settings: "Settings", manifest: "Manifest", digest: str) -> bool:
    models = (node for node in manifest.nodes.values() if node.resource_type.value == "model")
    views = [f"{model.schema}.{model.name}" for model in models if model.config.materialized == "view"]
    marker = _marker(settings, digest)
    if not views:
        return True
    if not marker.exists() or marker.read_text().split() != absent(settings, manifest):
        return False
    # The catalog is lost as a whole, so it is enough to find one view. Those of sources that do not exist are not there.
    return any(spark.catalog.tableExists(view) for view in views)


def _marker(settings: "Settings", digest: str) -> Path:
    return settings.home / "dbt" / f"{digest}.views"


def run(
    settings: "Settings", manifest: "Manifest", command: str, *options: str, progress: Progress | None = None
) -> list[Any]:
    """Run a command of dbt; what it says of each model and test that ran, as its ``run_results.json`` does.

    Args:
        progress: is told what dbt says while it runs.

    Raises:
        MartsFailed: names those that failed, and what they said.
    """
    from dbt.cli.main import dbtRunner

    callbacks = [_after_each, *([listener(settings, manifest, progress)] if progress else ())]
    result = invoke(settings, dbtRunner(manifest=manifest, callbacks=callbacks), command, *options)
    results: Any = result.result or ()
    if not result.success:
        broken = [r for r in results if r.status in ("error", "fail")]
        failed = {r.node.name: _first_lines(r.message) for r in broken}
        reasons = [f"{name}: {reason}" for name, reason in failed.items()] or [str(result.exception)]
        lasting = bool(broken) and all(r.status == "fail" or is_lasting(r.message or "") for r in broken)
        raise MartsFailed(f"dbt {command} failed:\n  " + "\n  ".join(reasons), failed, lasting=lasting)
    return [*results]


def is_lasting(message: str) -> bool:
    """Whether a model or test that fails with this message fails again, until somebody corrects a model or rows."""
    return bool(_LASTING.search(message))


def _after_each(event: Any) -> None:
    if event.info.name == "NodeFinished" and event.data.node_info.resource_type == "model":
        failpoint("mart-built")


def invoke(settings: "Settings", runner: "dbtRunner", command: str, *options: str) -> "dbtRunnerResult":
    """Call dbt for production; its artefacts are kept.

    Args:
        options: the rest of the command, such as ``generate`` of ``docs generate``, first.
    """
    from dbt.adapters.factory import reset_adapters

    # Tasks run at the same time, and dbt writes what it compiles: each call has a directory of its own.
    with tempfile.TemporaryDirectory(prefix="lockstep-dbt-") as target:
        paths = [part for pair in locations(settings).items() for part in pair]
        paths += ["--target", artefacts.PRODUCTION, "--target-path", target, "--log-path", target]
        quiet = ("--quiet", "--no-partial-parse", "--cache-selected-only")
        try:
            return runner.invoke([command, *options, *paths, *quiet, "--log-level-file", "none"])
        finally:
            artefacts.keep(settings, Path(target))
            # The adapter has semaphores, and a forked task ends without cleaning up: they would stay.
            reset_adapters()  # type: ignore[no-untyped-call]


def _first_lines(message: str | None) -> str:
    lines = [line.strip() for line in (message or "").splitlines() if line.strip()]
    return " ".join(lines[:3])
