"""Archive, compact and vacuum the tables of the lake, trim their logs, and remove old checkpoints and task logs."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lockstep import lake
from lockstep.checkpoints.tidy import tidy
from lockstep.control.intervals import holders
from lockstep.control.leases import lease
from lockstep.definition.tables import written_under
from lockstep.errors import Failures, SomeFailed
from lockstep.lake import Txn, small_commits
from lockstep.lake.small_commits import SmallCommits
from lockstep.ledger import RETENTION, archive, integrity
from lockstep.maintain import compaction
from lockstep.marts import published
from lockstep.replay.cleanup import remove_orphan_shadows
from lockstep.serving.merged import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

Result = TypeVar("Result")
# The live queries compact their own tables between two micro-batches. Another writer's OPTIMIZE would make their MERGE fail.
NOT_OURS = ("live", "_checkpoints")
# dbt writes these without their leases, and only Spark's own commits are safe beside those of Spark.
BY_SPARK = "marts."
# Hours. Spark's VACUUM refuses to keep files for less.
SPARKS_LEAST = 168
# Its records are in the control database, and may have to be found in its log: see lockstep.ledger.ops_table.
BOOKKEEPING = "ops."
# By table of bookkeeping that gets rows with each run or every few seconds, the column that says when.
KEPT_AS_LONG_AS_RUNS = {
    "ops.live_progress": "at",
    "ops.reconciliation": "reconciled_at",
    "ops.quality": "checked_at",
    # Each new one is looked up among all of them. A window that differs for longer than that is told of again.
    "ops.corrections": "at",
    "ops.alerts": "at",
}


@dataclass(frozen=True)
class MaintenanceResult:
    """The number of data files of one table before and after compaction."""

    table: str
    files_before: int
    files_after: int


class MaintenanceFailed(SomeFailed):
    """Some of the housekeeping could not be done.

    Args:
        failures: the parts that failed, by name.
        done: the tables that are done.
    """

    def __init__(self, failures: Mapping[str, Exception], done: list[MaintenanceResult]) -> None:
        super().__init__("The housekeeping", failures)
        self.done = done


def maintain(spark: "SparkSession", settings: "Settings", tables: list[str], run_id: str) -> list[MaintenanceResult]:
    """Archive the ledgers of the tables, then compact and vacuum each table and trim its log, under its lease.

    No file younger than ``retain_hours`` is removed: a reader, an as-of query or a replay's undo may still need it. Nor is one of
    a version that readers are held at, however old it is. A log keeps ``log_hours``, what is not archived, and the newest entry.
    What runs have found is kept as long as Airflow keeps the runs (``airflow_hours``).
    Tables of a replay that is under way are skipped. Shadow tables that no replay needs are removed.

    Raises:
        MaintenanceFailed: some tables have trouble. The message names them; all others are done.
    """
    replayed = {held["table_name"] for held in holders(settings) if held["kind"] == "replay"}
    names = [name for name in tables if not name.startswith("shadow.")]
    ours = [name for name in names if name.partition(".")[0] not in NOT_OURS and name not in replayed]
    failures = Failures()

    def attempt(name: str, work: Callable[[], Result]) -> Result | None:
        # Any exception: the other tables need their housekeeping. It is raised again below.
        with failures.of(name, Exception):
            return work()
        return None

    attempt("the shadows of replays", lambda: remove_orphan_shadows(spark, settings))
    attempt("the checkpoints", lambda: tidy(settings))
    attempt("the task logs", lambda: trim_logs(settings.home / "airflow" / "logs", settings.retain_hours))
    attempt(archive.TABLE.name, lambda: _archive(spark, settings, names, run_id, attempt))
    for name in names:
        attempt(name, partial(integrity.record_digests, settings, name))
    held = visible(settings)
    results = [attempt(name, partial(_maintain, spark, settings, held, name, run_id)) for name in ours]
    done = [result for result in results if result]
    if failures:
        raise MaintenanceFailed(failures, done)
    return done


def trim_logs(directory: Path, hours: int) -> int:
    """Remove Airflow's task logs that are older than this. The supervisor rotates the logs of the services.

    Returns:
        The number of removed files.
    """
    limit = time.time() - hours * 3600
    old = [file for file in directory.rglob("*.log") if file.stat().st_mtime < limit]
    for file in old:
        file.unlink()
    return len(old)


def _archive(
    spark: "SparkSession",
    settings: "Settings",
    tables: Iterable[str],
    run_id: str,
    attempt: Callable[[str, Callable[[], object]], object],
) -> None:
    """Archive the ledgers of tables. One with trouble keeps its log, and the others are archived."""
    with archive.archiving(spark, settings, run_id) as take:
        for table in tables:
            if table.startswith(archive.LAYERS):
                attempt(table, partial(take, table))


def _maintain(
    spark: "SparkSession", settings: "Settings", held: Mapping[str, int], table: str, run_id: str
) -> MaintenanceResult:
    with lease(settings, written_under(table), run_id):
        # Nothing is written after a newest commit that is torn: delta-rs would go on after one that is empty.
        next(lake.commits(settings, table), None)
        opened = SmallCommits(settings, table)
        if table.startswith(archive.LAYERS):
            opened.set_properties(RETENTION)
        before = opened.file_sizes()
        if table in KEPT_AS_LONG_AS_RUNS:
            forget(settings, opened, table, datetime.now(UTC) - timedelta(hours=settings.airflow_hours))
        compaction.compact(spark, settings, table, opened, by_spark=table.startswith(BY_SPARK))
        if table.startswith(BY_SPARK):
            _vacuum_mart(spark, settings, table)
        else:
            opened.vacuum(settings.retain_hours, held.get(table))
            _trim(settings, table, held.get(table))
        after = opened.file_sizes()
        return MaintenanceResult(table, *(sum(map(len, sizes.values())) for sizes in (before, after)))


def _vacuum_mart(spark: "SparkSession", settings: "Settings", table: str) -> None:
    if published.is_unpublished(settings, table):
        # The files that readers need may not be those of the newest version. The next run of the marts puts it right.
        return
    spark.sql(f"VACUUM delta.`{lake.path(settings, table)}` RETAIN {max(settings.retain_hours, SPARKS_LEAST)} HOURS")


def forget(settings: "Settings", opened: SmallCommits, table: str, before: datetime) -> None:
    """Remove the rows of a table of bookkeeping from before an instant (UTC)."""
    # As text: delta-rs does not compare a column with a literal of another precision.
    old = f"{KEPT_AS_LONG_AS_RUNS[table]} < '{before:%F %T}'"
    if small_commits.collect(settings, table, old, [KEPT_AS_LONG_AS_RUNS[table]]).num_rows:
        txn = Txn(f"forget:{table}", opened.version + 1)
        opened.replace(opened.schema.empty_table(), old, txn, {"writer": "maintain"})


def _trim(settings: "Settings", table: str, held: int | None) -> None:
    """Remove what a log has longer than ``log_hours``. The newest record, and that of the version of held readers, stay."""
    has_ledger = table.startswith(archive.LAYERS)
    if not has_ledger and not table.startswith(BOOKKEEPING):
        return
    recorded = (c.version for c in lake.commits(settings, table) if ("ranges" if has_ledger else "seq") in c.record)
    until = next((version for version in recorded if held is None or version <= held), -1)
    if has_ledger:
        until = min(until, archive.archived(settings, table).version)
    lake.trim(settings, table, until, datetime.now(UTC) - timedelta(hours=settings.log_hours))
