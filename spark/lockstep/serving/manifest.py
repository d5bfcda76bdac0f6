"""The published manifest: which version of each table readers follow. One commit to ``ops.published`` switches them all.

Normally a reader takes the newest version of a table. While a replay is promoted, or undone, the tables that it writes are held
at the versions that they had, and the last commit lets go of all of them at once: no reader sees a half. A crash in between
leaves them held, whole and old, until the replay goes on.
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
    """The tables whose readers are held, each with the version to read; of all others the newest is published. No Spark."""
    versions: dict[str, int] = {}
    for held in _held(settings).values():
        for table, version in held.items():
            versions[table] = min(version, versions.get(table, version))
    return versions


def read(spark: "SparkSession", settings: "Settings", table: str) -> "DataFrame":
    """The table's published rows."""
    return lake.read(spark, settings, table, published(settings).get(table))


def hold(spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]") -> None:
    """Keep readers at these versions until ``by`` publishes; what it holds already stays as it is."""
    if by not in _held(settings):
        _switch(spark, settings, by, versions, is_held=True)


def publish(spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]") -> None:
    """Let readers go on to the newest versions, in one commit; ``versions`` are those that this is about, for the record."""
    if by in _held(settings):
        _switch(spark, settings, by, versions, is_held=False)


def _held(settings: "Settings") -> "dict[str, dict[str, int]]":
    return dict(TABLE.newest(settings).get("held", {}))


def _switch(
    spark: "SparkSession", settings: "Settings", by: str, versions: "Mapping[str, int]", *, is_held: bool
) -> None:
    now = datetime.now(UTC)
    rows: Rows = [(table, version, is_held, by, now) for table, version in sorted(versions.items())]
    with TABLE.writing(spark, settings, by) as commit:
        held = {other: tables for other, tables in commit.newest.get("held", {}).items() if other != by}
        if is_held:
            held[by] = dict(versions)
        commit.append(rows, {"by": by, "held": held})
