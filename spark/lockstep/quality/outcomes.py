"""Outcomes of the gates: a row per table and run in ``ops.quality`` with all checks, and the state of all gates in its record."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from lockstep.ledger.ops_table import NextCommit, OpsTable
from lockstep.quality.checks import Check
from lockstep.quality.distributions import Counts, with_slice
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
    "warned": "ARRAY<STRING>",
    "results": (
        "ARRAY<STRUCT<expectation: STRING, columns: ARRAY<STRING>, severity: STRING, success: BOOLEAN, observed: STRING, "
        "unexpected: BIGINT, elements: BIGINT>>"
    ),
}
TABLE = OpsTable("ops.quality", COLUMNS, "gate")


@dataclass(frozen=True)
class GateVerdict:
    """The result of a gate on one table, in numbers. A check is one expectation of the suite, applied to the new rows.

    Args:
        success: the gate is open: no check failed but those that only warn.
        checks: how many checks were made.
        failed: how many of them failed, and shut the gate.
        rows: how many rows were checked.
        warned: how many of them failed, and only warn.
    """

    success: bool
    checks: int
    failed: int
    rows: int
    warned: int = 0

    def __str__(self) -> str:
        """One line for people. Programs read the fields."""
        result = "passed" if self.success else f"FAILED {self.failed} of"
        warnings = f", {self.warned} warning{'s' if self.warned > 1 else ''}" if self.warned else ""
        return f"{result} {self.checks} checks on {self.rows:,} rows{warnings}"


@dataclass(frozen=True)
class Outcome:
    """The result of a gate on one table, with its reasons.

    Args:
        results: the check of each expectation, in the order of the suite.
        slice: the SQL predicate that selects the checked rows.
        version: the version of the table's ledger up to which rows were checked.
        suite_digest: what the suite's file is known by; None: it is not known any more.
        counts: by expectation that follows history, how often each value came.
    """

    table: str
    suite: str
    results: tuple[Check, ...]
    rows: int
    slice: str
    version: int
    checked_at: datetime
    suite_digest: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether the gate is open."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """One sentence for each check that shuts the gate. None has personal values."""
        return tuple(check.reason for check in self.results if check.shuts)

    @property
    def warned(self) -> tuple[str, ...]:
        """One sentence for each check that failed, and only warns."""
        return tuple(check.reason for check in self.results if not check.success and not check.shuts)

    @property
    def verdict(self) -> GateVerdict:
        """The outcome in numbers."""
        return GateVerdict(self.success, len(self.results), len(self.failed), self.rows, len(self.warned))


@dataclass(frozen=True)
class GateState:
    """The state of all gates, as the newest record of ``ops.quality`` has it.

    Args:
        positions: per table, the version of its ledger up to which all rows have passed. A table that never passed is missing.
        verdicts: per table, its newest verdict.
        suites: per table, the digest of the suite by which it was checked last.
        distributions: per table and expectation that follows history, the counts of each value in rows that have passed.
    """

    positions: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, GateVerdict] = field(default_factory=dict)
    suites: Mapping[str, str | None] = field(default_factory=dict)
    distributions: Mapping[str, Mapping[str, Counts]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The state that a record has; without one, no gate has passed anything."""
        verdicts = {table: GateVerdict(**fields) for table, fields in record.get("verdicts", {}).items()}
        return cls(record.get("positions", {}), verdicts, record.get("suites", {}), record.get("distributions", {}))

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
            for field in ("verdicts", "positions", "suites", "distributions")
        }
        commit.append([], {**before, **kept})


def write(commit: NextCommit, outcomes: Iterable[Outcome], before: GateState, run_id: str) -> None:
    """Write the outcomes in one commit. Only a table that passed moves its position, so failed rows are checked again."""
    outcomes = list(outcomes)
    verdicts = {**before.verdicts, **{o.table: o.verdict for o in outcomes}}
    commit.append(
        [_row(outcome, run_id) for outcome in outcomes],
        {
            "run_id": run_id,
            "code_version": code_version(),
            "verdicts": {table: asdict(verdict) for table, verdict in verdicts.items()},
            "positions": {**before.positions, **{o.table: o.version for o in outcomes if o.success}},
            "suites": {**before.suites, **{o.table: o.suite_digest for o in outcomes}},
            "distributions": {**before.distributions, **{o.table: _history(o, before) for o in outcomes if o.success}},
        },
    )


def _history(o: Outcome, before: GateState) -> dict[str, Counts]:
    known = before.distributions.get(o.table, {})
    return {name: with_slice(name, known.get(name, ()), counts) for name, counts in o.counts.items()}


def _row(o: Outcome, run_id: str) -> tuple[object, ...]:
    fields = ("expectation", "columns", "severity", "success", "observed", "unexpected", "elements")
    results = [{name: getattr(check, name) for name in fields} | {"columns": [*check.columns]} for check in o.results]
    numbers = (len(o.results), [*o.failed], o.rows)
    return (o.table, o.suite, o.success, *numbers, o.slice, run_id, o.checked_at, [*o.warned], results)
