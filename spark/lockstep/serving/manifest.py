"""The published manifest: the version of each table that readers see. One commit to ``ops.published`` changes all of them.

Normally a reader sees the newest version of a table. While a replay is promoted or undone, its tables are held at the versions
that they had before. The last commit releases all of them at once, so no reader sees only a part of the replay. After a crash
in between, the tables stay held at the old versions until the replay is continued.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.ledger.ops_table import OpsTable, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

COLUMNS = {"table": "STRING", "version": "BIGINT", "held": "BOOLEAN", "by": "STRING", "at": "TIMESTAMP"}
TABLE = OpsTable("ops.published", COLUMNS, "manifest")


def published(settings: "Settings") -> dict[str, int]:
    """The tables that are held, each with the version to read. Of all others the newest is published. Needs no Spark."""
    versions: dict[str, int] = {}
    for tables in _held(settings).values():
        for table, version in tables.items():
            versions[table] = min(version, versions.get(table, version))
    return versions


def read(spark: "SparkSession", settings: "Settings", table: str) -> "DataFrame":
    """The table's published rows."""
    return lake.read(spark, settings, table, published(settings).get(table))


def hold(spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]") -> None:
    """Hold tables at these versions until ``by`` publishes. If ``by`` holds tables already, nothing changes."""
    if by not in _held(settings):
        _commit(spark, settings, by, versions, is_held=True)


def publish(spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]") -> None:
    """Release the tables that ``by`` holds, in one commit. ``versions`` are the tables' new versions, for the record."""
    if by in _held(settings):
        _commit(spark, settings, by, versions, is_held=False)


def _held(settings: "Settings") -> "dict[str, dict[str, int]]":
    """The version of each held table, by who holds it."""
    return dict(TABLE.newest(settings).get("held", {}))


def _commit(
    spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]", *, is_held: bool
) -> None:
    now = datetime.now(UTC)
    rows: Rows = [(table, version, is_held, by, now) for table, version in sorted(versions.items())]
    with TABLE.writing(spark, settings, by) as commit:
        held = {holder: tables for holder, tables in commit.newest().get("held", {}).items() if holder != by}
        if is_held:
            held[by] = dict(versions)
        commit.append(rows, {"by": by, "held": held})
