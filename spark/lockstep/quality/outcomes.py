"""What the gates found: a row per table and run in ``ops.quality``, and how far each table has passed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.definition.columns import ddl
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

TABLE = "ops.quality"
COLUMNS = {
    "table": "STRING",
    "suite": "STRING",
    "success": "BOOLEAN",
    "checks": "INT",
    "failed": "ARRAY<STRING>",
    "rows": "BIGINT",
    "slice": "STRING",
    "run_id": "STRING",
    "checked_at": "TIMESTAMP",
}


@dataclass(frozen=True)
class Outcome:
    """What one gate said of one table's new rows.

    Args:
        version: the ledger's version up to which the rows were looked at.
        checks: how many expectations were held against them.
        failed: one sentence per expectation that does not hold; personal values are never in it.
        slice: the predicate that selects the rows.
    """

    table: str
    suite: str
    success: bool
    checks: int
    failed: tuple[str, ...]
    rows: int
    slice: str
    version: int
    checked_at: datetime

    def __str__(self) -> str:
        verdict = f"FAILED {len(self.failed)} of" if self.failed else "passed"
        return f"{verdict} {self.checks} checks on {self.rows:,} rows"


@dataclass(frozen=True)
class Passed:
    """The newest commit of ``ops.quality``.

    Args:
        seq: its number; 0 when there is none.
        positions: up to which version each table has passed; a table that never did is missing.
        newest: the newest outcome of each table, in a few words.
    """

    seq: int
    positions: Mapping[str, int]
    newest: Mapping[str, str]


def passed(settings: "Settings") -> Passed:
    """How far the tables have passed."""
    for commit in lake.commits(settings, TABLE):
        if "positions" in commit.record:
            return Passed(commit.record["seq"], commit.record["positions"], commit.record["newest"])
    return Passed(0, {}, {})


def summary(settings: "Settings") -> Mapping[str, str]:
    """Each gated table's newest outcome: ``passed …`` or ``FAILED …``; needs no Spark."""
    return passed(settings).newest


def write(
    spark: "SparkSession", settings: "Settings", outcomes: Iterable[Outcome], before: Passed, run_id: str
) -> None:
    """Keep the outcomes in one commit. Only a table that passed moves on: a bad row is looked at until it is good."""
    outcomes = list(outcomes)
    if not before.seq:
        lake.create(spark, settings, TABLE, COLUMNS)
    rows = [
        (o.table, o.suite, o.success, o.checks, list(o.failed), o.rows, o.slice, run_id, o.checked_at.astimezone(UTC))
        for o in outcomes
    ]
    record = {
        "writer": "gate",
        "seq": before.seq + 1,
        "run_id": run_id,
        "code_version": code_version(),
        "newest": {**before.newest, **{o.table: str(o) for o in outcomes}},
        "positions": {**before.positions, **{o.table: o.version for o in outcomes if o.success}},
    }
    lake.append(spark.createDataFrame(rows, ddl(COLUMNS)), settings, TABLE, ledger.txn(TABLE, record), record)
