"""Outcomes of the gates: one row per table and run in ``ops.quality``, and the newest state of all gates in its record."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from lockstep.ledger.ops_table import NextCommit, OpsTable
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

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
TABLE = OpsTable("ops.quality", COLUMNS, "gate")


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
    """The state of all gates, as the newest record of ``ops.quality`` has it.

    Args:
        positions: per table, the version of its ledger up to which all rows have passed. A table that never passed is missing.
        verdicts: per table, its newest verdict.
    """

    positions: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, GateVerdict] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The state that a record has; without one, no gate has passed anything."""
        verdicts = {table: GateVerdict(**fields) for table, fields in record.get("verdicts", {}).items()}
        return cls(record.get("positions", {}), verdicts)

    @property
    def held_back(self) -> dict[str, int]:
        """The tables whose newest verdict is a failure, each with its last version that has passed; -1 if none has."""
        return {table: self.positions.get(table, -1) for table, verdict in self.verdicts.items() if not verdict.success}


def latest(settings: "Settings") -> GateState:
    """Read the state of all gates. Needs no Spark."""
    return GateState.of(TABLE.newest(settings))


def forget(spark: "SparkSession", settings: "Settings", tables: Collection[str]) -> None:
    """Forget what the gates know of tables that are about to be removed. Their rows in ``ops.quality`` stay."""
    known = latest(settings)
    if not (known.positions.keys() | known.verdicts.keys()) & {*tables}:
        return
    with TABLE.writing(spark, settings, "purge") as commit:
        before = commit.newest()
        kept = {
            field: {table: value for table, value in before.get(field, {}).items() if table not in tables}
            for field in ("verdicts", "positions")
        }
        commit.append([], {**before, **kept})


def write(commit: NextCommit, outcomes: Iterable[Outcome], before: GateState, run_id: str) -> None:
    """Write the outcomes in one commit. Only a table that passed moves its position, so failed rows are checked again."""
    outcomes = list(outcomes)
    verdicts = {**before.verdicts, **{o.table: o.verdict for o in outcomes}}
    commit.append(
        [(o.table, o.suite, o.success, o.checks, [*o.failed], o.rows, o.slice, run_id, o.checked_at) for o in outcomes],
        {
            "run_id": run_id,
            "code_version": code_version(),
            "verdicts": {table: asdict(verdict) for table, verdict in verdicts.items()},
            "positions": {**before.positions, **{o.table: o.version for o in outcomes if o.success}},
        },
    )
