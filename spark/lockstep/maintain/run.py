"""Look after the tables of the lake."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.checkpoints.tidy import tidy
from lockstep.control.intervals import holders
from lockstep.control.leases import lease
from lockstep.ledger import integrity
from lockstep.ledger.archive import archive
from lockstep.replay.cleanup import remove_orphan_shadows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# The live queries compact their own tables between two micro-batches: anybody else's OPTIMIZE would fail their MERGE.
NOT_OURS = ("live", "_checkpoints")
SMALL_FILES = 16
SMALL_BYTES = 64 << 20


@dataclass(frozen=True)
class MaintenanceResult:
    """What was done to one table: files before and after compaction, and whether old files were removed."""

    table: str
    files_before: int
    files_after: int


def maintain(spark: "SparkSession", settings: "Settings", tables: list[str], run_id: str) -> list[MaintenanceResult]:
    """Archive the ledgers of the tables, then compact and vacuum each under its lease.

    Nothing younger than ``retain_hours`` is removed: until then a reader, an as-of query or a replay's undo may use any version.
    A table that a replay is at work on is left alone for as long as that takes, and shadows that no replay needs are removed.
    """
    remove_orphan_shadows(spark, settings)
    replayed = {held["table_name"] for held in holders(settings) if held["kind"] == "replay"}
    names = [name for name in tables if not name.startswith("shadow.")]
    archive(spark, settings, names, run_id)
    for name in names:
        integrity.record_digests(settings, name)
    tidy(settings)
    trim_logs(settings.home / "airflow" / "logs", settings.retain_hours)
    ours = [name for name in names if name.partition(".")[0] not in NOT_OURS and name not in replayed]
    return [_maintain(spark, settings, name, run_id) for name in ours]


def trim_logs(directory: Path, hours: int) -> int:
    """Remove the task logs that nobody has written to for so long; the supervisor rotates those of the parts itself.

    Returns:
        How many files were removed.
    """
    limit = time.time() - hours * 3600
    old = [file for file in directory.rglob("*.log") if file.stat().st_mtime < limit]
    for file in old:
        file.unlink()
    return len(old)


def _maintain(spark: "SparkSession", settings: "Settings", table: str, run_id: str) -> MaintenanceResult:
    where = f"delta.`{lake.path(settings, table)}`"
    with lease(settings, table, run_id):
        before = _files(spark, where)
        if before[0] >= SMALL_FILES and before[1] / before[0] < SMALL_BYTES:
            spark.sql(f"OPTIMIZE {where}")
        spark.sql(f"VACUUM {where} RETAIN {settings.retain_hours} HOURS")
        return MaintenanceResult(table, before[0], _files(spark, where)[0])


def _files(spark: "SparkSession", where: str) -> tuple[int, int]:
    detail = spark.sql(f"DESCRIBE DETAIL {where}").select("numFiles", "sizeInBytes").collect()[0]
    return detail["numFiles"], detail["sizeInBytes"]
