"""Build the marts with dbt, for whole days. A project without marts needs no dbt."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import ledger
from lockstep.marts.dbt_project import (
    absent,
    dbt_on,
    downstream,
    has_marts,
    manifest_of,
    project_digest,
    read_by_models,
    run,
    up_to_date_views,
)
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

_MARTS = (
    "--select",
    "path:models/marts",
    "--exclude-resource-type",
    "unit_test",
    "--exclude-resource-type",
    "exposure",
)
# Views are up to date without being built again.
_TABLES_ONLY = ("--exclude", "config.materialized:view")
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def build(spark: "SparkSession", settings: "Settings", start: datetime, end: datetime, run_id: str) -> list[str]:
    """Build and test every mart for the days in ``[start, end)`` (UTC midnights); each day is replaced as a whole.

    A mart that does not exist yet is built for all days. One of which a source does not exist yet is left out.
    The commits' ``userMetadata`` has the run, the interval and the versions of silver.

    Returns:
        The names of the models and tests that ran; none where the project has no marts.

    Raises:
        MartsFailed: names the models and tests, and what they said.
        ValueError: the interval is empty, or its ends are not midnights in UTC.
    """
    first, last = whole_days(start, end)
    if not has_marts(settings):
        return []
    record: dict[str, Any] = {
        "writer": "dbt",
        "run_id": run_id,
        "code_version": code_version(),
        "interval": [first, last],
    }
    with dbt_on(spark, settings):
        digest = project_digest(settings)
        manifest = manifest_of(settings, digest)
        record["sources"] = {table: _version(settings, table) for table in read_by_models(manifest)}
        interval = ("--event-time-start", first, "--event-time-end", last)
        with up_to_date_views(spark, settings, manifest, digest) as current, _commits_say(spark, record):
            which = (*_MARTS, *(_TABLES_ONLY if current else ()), *downstream(absent(settings, manifest)))
            return run(settings, manifest, "build", *which, *interval)


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
        return run(settings, manifest, "test", *which)


def whole_days(start: datetime, end: datetime) -> tuple[str, str]:
    """The first day and the day after the last (ISO dates) of ``[start, end)``, which must be midnights in UTC."""
    ends = [moment.astimezone(UTC) for moment in (start, end)]
    if not ends[0] < ends[1] or any(moment.time().isoformat() != "00:00:00" for moment in ends):
        raise ValueError(f"[{start}, {end}) is not a range of whole days in UTC: give two midnights, the earlier first")
    return f"{ends[0]:%Y-%m-%d}", f"{ends[1]:%Y-%m-%d}"


def _version(settings: "Settings", table: str) -> int | None:
    newest = ledger.latest(settings, table)
    return newest.version if newest else None
