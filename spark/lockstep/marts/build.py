"""Build the marts with dbt, for whole days. A project without marts needs no dbt."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.failpoints import failpoint
from lockstep.marts import published
from lockstep.marts.dbt_project import (
    MartsFailed,
    dbt_on,
    has_marts,
    manifest_of,
    project_digest,
    run,
    up_to_date_views,
)
from lockstep.marts.listener import tests_of
from lockstep.marts.parsed import absent, downstream, new_tables, read_by_models, tables_of, views_of
from lockstep.marts.progress import Box, Kind, Progress
from lockstep.version import code_version

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# The project's singular tests are about whatever they name, and run with the marts.
_MARTS = ("--select", "path:models/marts", "--select", "path:tests")
_WITHOUT = (
    "--exclude-resource-type",
    "unit_test",
    "--exclude-resource-type",
    "exposure",
)
# Views are up to date without being built again.
_TABLES_ONLY = ("--exclude", "config.materialized:view")
# The last commits of a first build are those of its constraints.
_WRITES = ("WRITE", "MERGE", "AS SELECT")
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class Built:
    """What a run of dbt has done.

    Args:
        names: of the models and tests that ran.
        warned: by test that failed and only warns, what dbt says of it.
    """

    names: list[str] = field(default_factory=list)
    warned: Mapping[str, str] = field(default_factory=dict)


def build(
    spark: "SparkSession",
    settings: "Settings",
    start: datetime,
    end: datetime,
    run_id: str,
    progress: Progress | None = None,
    only: Box | None = None,
) -> Built:
    """Build and test every mart for the days in ``[start, end)`` (UTC midnights), each as a whole, and publish them together.

    A mart that does not exist yet is built, and tested, for all days. One of which a source does not exist yet is left out.
    The commits' ``userMetadata`` has the run, the interval and the versions of silver. The caller holds the lease of the marts.

    Args:
        progress: is told what dbt says of each mart.
        only: the mart to build, with what is made from it; or whose tests to run. Else all, and also where views have to be made.

    Returns:
        What ran; nothing where the project has no marts.

    Raises:
        MartsFailed: names the models and tests, and what they said. Readers see what they saw before.
        ValueError: the interval is empty, or its ends are not midnights in UTC.
    """
    first, last = whole_days(start, end)
    if not has_marts(settings):
        return Built()
    record: dict[str, Any] = {
        "writer": published.WRITER,
        "run_id": run_id,
        "code_version": code_version(),
        "interval": [first, last],
    }
    # The first of all: also if the project cannot be parsed any more, nothing of a run that died stays.
    published.begin(spark, settings, run_id)
    with dbt_on(spark, settings):
        digest = project_digest(settings)
        manifest = manifest_of(settings, digest)
        record["sources"] = {table: _version(settings, table) for table in read_by_models(manifest)}
        interval = ("--event-time-start", first, "--event-time-end", last)
        with up_to_date_views(spark, settings, manifest, digest) as current:
            try:
                with _commits_say(spark, record):
                    results = _build(
                        settings, manifest, interval, progress, only if current else None, tables_only=current
                    )
            except MartsFailed:
                published.take_back(spark, settings, run_id)
                raise
            failpoint("marts-tested")
            published.publish(spark, settings, run_id, views_of(results), are_all=not current)
        if progress:
            _say_rows(settings, results, progress)
        warned = {result.node.name: result.message for result in results if result.status == "warn"}
        return Built([result.node.name for result in results], warned)


def is_first(settings: "Settings") -> bool:
    """Whether no mart has a table yet, so that the next build makes all days."""
    _, are_all_new = new_tables(settings, manifest_of(settings, project_digest(settings)))
    return are_all_new


def _build(
    settings: "Settings",
    manifest: "Manifest",
    interval: tuple[str, ...],
    progress: Progress | None,
    only: Box | None,
    *,
    tables_only: bool,
) -> list[Any]:
    """Build and test the marts for an interval, and those that are new for all days; dbt's results."""
    # Who asks for one mart gets it, also if it is a view.
    rest = (*_WITHOUT, *(_TABLES_ONLY if tables_only and not only else ()), *downstream(absent(settings, manifest)))
    wanted = _selection(manifest, only) if only else _MARTS
    if not wanted:
        return []
    new, are_all_new = new_tables(settings, manifest)
    if are_all_new:
        return run(settings, manifest, "build", *_MARTS, *rest, progress=progress)
    # A test of the run's days would not see the others.
    first = [part for name in new for part in ("--select", name)]
    results = run(settings, manifest, "build", *first, *rest, progress=progress) if new else []
    return results + run(settings, manifest, "build", *wanted, *rest, *interval, progress=progress)


def _selection(manifest: "Manifest", only: Box) -> tuple[str, ...]:
    """dbt's options for a mart and what is made from it, or for its tests alone; none: it has no tests."""
    names = [f"{only.mart}+"] if only.kind is Kind.RUN else tests_of(manifest, only.mart)
    return tuple(part for name in names for part in ("--select", name))


def _say_rows(settings: "Settings", results: list[Any], progress: Progress) -> None:
    for name, alias in tables_of(results):
        commits = lake.commits(settings, f"{lake.MARTS}.{alias}")
        rows = next(commit.rows for commit in commits if commit.operation.endswith(_WRITES))
        progress.say(f"{rows:,} rows were written to {lake.MARTS}.{alias}", Box(name, Kind.RUN))


@contextmanager
def _commits_say(spark: "SparkSession", record: dict[str, Any]) -> Iterator[None]:
    spark.conf.set(USER_METADATA, json.dumps(record, sort_keys=True))
    try:
        yield
    finally:
        spark.conf.unset(USER_METADATA)


def unit_tests(spark: "SparkSession", settings: "Settings") -> list[str]:
    """Run dbt's own unit tests of the models whose sources exist on this session, and name them; the marts must be built.

    Raises:
        MartsFailed: names those that fail, with what they got.
    """
    with dbt_on(spark, settings):
        digest = project_digest(settings)
        manifest = manifest_of(settings, digest)
        which = ("--select", "test_type:unit", *downstream(absent(settings, manifest)))
        return [result.node.name for result in run(settings, manifest, "test", *which)]


def whole_days(start: datetime, end: datetime) -> tuple[str, str]:
    """The first day and the day after the last (ISO dates) of ``[start, end)``, which must be midnights in UTC."""
    ends = [moment.astimezone(UTC) for moment in (start, end)]
    if not ends[0] < ends[1] or any(moment.time().isoformat() != "00:00:00" for moment in ends):
        raise ValueError(f"[{start}, {end}) is not a range of whole days in UTC: give two midnights, the earlier first")
    return f"{ends[0]:%Y-%m-%d}", f"{ends[1]:%Y-%m-%d}"


def _version(settings: "Settings", table: str) -> int | None:
    newest = ledger.latest(settings, table)
    return newest.version if newest else None
