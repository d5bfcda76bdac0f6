"""dbt's ``source freshness`` of production: which sources have had no row for longer than ``freshness`` in their file allows."""

from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.marts.dbt_project import MartsFailed, dbt_on, has_marts, invoke, manifest_of, project_digest

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

_LIMITS = {"warn": "warn_after", "error": "error_after"}


def stale(spark: "SparkSession", settings: "Settings") -> dict[str, str]:
    """By source (``layer.name``) that is stale, since when and by which limit. Sources that do not exist are left out.

    The artefact ``sources.json`` is kept, for dbt's ``source_status``.

    Raises:
        MartsFailed: dbt could not ask.
    """
    from dbt.cli.main import dbtRunner

    if not has_marts(settings):
        return {}
    with dbt_on(spark, settings):
        manifest = manifest_of(settings, project_digest(settings))
        without = [part for table in _absent(settings, manifest) for part in ("--exclude", f"source:{table}")]
        result = invoke(settings, dbtRunner(manifest=manifest), "source", "freshness", *without)
    found: Any = result.result
    if found is None:
        raise MartsFailed(f"dbt source freshness failed: {result.exception}")
    if broken := {_name(r.node): str(r.message) for r in found.results if r.status == "runtime error"}:
        reasons = "\n  ".join(f"{table}: {reason}" for table, reason in broken.items())
        raise MartsFailed(f"dbt source freshness failed:\n  {reasons}", broken)
    return {_name(r.node): _sentence(r) for r in found.results if r.status in _LIMITS}


def _absent(settings: "Settings", manifest: "Manifest") -> list[str]:
    tables = (_name(source) for source in manifest.sources.values() if source.has_freshness)
    return sorted(table for table in tables if not lake.exists(settings, table))


def _name(source: Any) -> str:
    return f"{source.source_name}.{source.name}"


def _sentence(result: Any) -> str:
    limit = _LIMITS[result.status]
    allowed = getattr(result.node.freshness, limit)
    period = f"{allowed.count} {allowed.period.value}{'s' if allowed.count > 1 else ''}"
    return f"the newest row is of {result.max_loaded_at:%F %T} UTC, and {limit} is {period}"
