"""Outcomes of the gates: one row per table and run in ``ops.quality``, and the newest state of all gates in its commits."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
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
class GateVerdict:
    """The result of a gate on one table, in numbers. A check is one expectation of the suite, applied to the new rows.

    Args:
        success: all checks passed.
        checks: how many checks were made.
        failed: how many of them failed.
        rows: how many rows were checked.
    """

    success: bool
    checks: int
    failed: int
    rows: int

    def __str__(self) -> str:
        """One line for people. Programs read the fields."""
        result = "passed" if self.success else f"FAILED {self.failed} of"
        return f"{result} {self.checks} checks on {self.rows:,} rows"


@dataclass(frozen=True)
class Outcome:
    """The result of a gate on one table, with its reasons.

    Args:
        checks: how many expectations were checked.
        failed: one sentence per failed check. It never contains personal values.
        slice: the SQL predicate that selects the checked rows.
        version: the version of the table's ledger up to which rows were checked.
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

    @property
    def verdict(self) -> GateVerdict:
        """The outcome in numbers."""
        return GateVerdict(self.success, self.checks, len(self.failed), self.rows)


@dataclass(frozen=True)
class GateState:
    """The state of all gates, as the newest commit of ``ops.quality`` records it.

    Args:
        seq: the number of the commit; 0 before the first.
        positions: per table, the version of its ledger up to which all rows have passed. A table that never passed is missing.
        verdicts: per table, its newest verdict.
    """

    seq: int
    positions: Mapping[str, int]
    verdicts: Mapping[str, GateVerdict]

    @property
    def held_back(self) -> dict[str, int]:
        """The tables whose newest verdict is a failure, each with its last version that has passed; -1 if none has."""
        return {table: self.positions.get(table, -1) for table, verdict in self.verdicts.items() if not verdict.success}


def latest(settings: "Settings") -> GateState:
    """Read the state of all gates. Needs no Spark."""
    for commit in lake.commits(settings, TABLE):
        if "positions" in commit.record:
            verdicts = {table: GateVerdict(**fields) for table, fields in commit.record["verdicts"].items()}
            return GateState(commit.record["seq"], commit.record["positions"], verdicts)
    return GateState(0, {}, {})


def write(
    spark: "SparkSession", settings: "Settings", outcomes: Iterable[Outcome], before: GateState, run_id: str
) -> None:
    """Write the outcomes in one commit. Only a table that passed moves its position, so failed rows are checked again."""
    outcomes = list(outcomes)
    if not before.seq:
        lake.create(spark, settings, TABLE, COLUMNS)
    rows = [
        (o.table, o.suite, o.success, o.checks, list(o.failed), o.rows, o.slice, run_id, o.checked_at.astimezone(UTC))
        for o in outcomes
    ]
    verdicts = {**before.verdicts, **{o.table: o.verdict for o in outcomes}}
    record = {
        "writer": "gate",
        "seq": before.seq + 1,
        "run_id": run_id,
        "code_version": code_version(),
        "verdicts": {table: asdict(verdict) for table, verdict in verdicts.items()},
        "positions": {**before.positions, **{o.table: o.version for o in outcomes if o.success}},
    }
    lake.append(spark.createDataFrame(rows, ddl(COLUMNS)), settings, TABLE, ledger.txn(TABLE, record), record)
