"""The gate: check the new rows of a table against its suite. When a check fails that is not a warning, the gate is shut.

Then nothing downstream of the table runs, and readers keep the last version that passed.

``import great_expectations`` takes seconds, so it is imported only when there are rows to check.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.failpoints import failpoint
from lockstep.quality import docs, outcomes
from lockstep.quality.checks import Check, check
from lockstep.quality.outcomes import GateState, Outcome
from lockstep.quality.slices import Slice, pending
from lockstep.quality.suites import gated, load, pii_columns
from lockstep.suite_files import digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

# Three values show what is wrong with a column, and the message stays one line.
_COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 3}


class GateFailed(LockstepError):
    """New rows of a table do not meet its expectations.

    Args:
        outcomes: of all tables that were checked.
    """

    def __init__(self, outcomes: list[Outcome]) -> None:
        reasons = [f"{o.table} ({o.slice}): {reason}" for o in outcomes for reason in o.failed]
        super().__init__(
            "The gate is shut, nothing downstream runs:\n  "
            + "\n  ".join(reasons)
            + "\n`lockstep quality show TABLE` and the data docs have each check and its trend. Replace the rows by a replay, or "
            "change the suite in expectations/."
        )
        self.outcomes = outcomes


def run_gates(spark: "SparkSession", settings: "Settings", tables: Iterable[str], run_id: str) -> list[Outcome]:
    """Check the new rows of each table (``layer.name``) against its suite, and write the outcomes to ``ops.quality``.

    A row is new until its table passes a gate. Rows that failed are checked again, together with the rows after them, until
    a replay replaces them or the suite changes.

    Returns:
        One outcome for each table that had new rows.

    Raises:
        GateFailed: at least one check failed that is not a warning. The message names each table, expectation and some
            values. The outcomes of all tables are written before.
        SuiteMissing: a table has no suite.
    """
    with outcomes.TABLE.writing(spark, settings, run_id) as commit:
        before = GateState.of(commit.newest())
        slices = [pending(settings, table, before.positions.get(table, -1)) for table in tables]
        results = [validate(spark, settings, new) for new in slices if new]
        if not results:
            return []
        outcomes.write(commit, results, before, run_id)
        docs.add(settings, results, run_id)
    failpoint("gate-passed")
    if any(outcome.failed for outcome in results):
        raise GateFailed(results)
    return results


def validate(spark: "SparkSession", settings: "Settings", new: Slice) -> Outcome:
    """Check a slice of a table against its suite.

    A small slice that passes is checked without Spark. What shuts the gate there is checked by Spark, whose word counts.
    """
    suite_digest, suite = digest(settings, new.table), load(settings, new.table)
    checks = _without_spark(settings, new, suite)
    if checks is None or any(check.shuts for check in checks):
        checks = _in_spark(suite, lake.read(spark, settings, new.table).where(new.where), new.rows)
    return Outcome(
        table=new.table,
        suite=suite["name"],
        results=tuple(checks),
        rows=new.rows,
        slice=new.where,
        version=new.version,
        checked_at=datetime.now(UTC),
        suite_digest=suite_digest,
    )


def _without_spark(settings: "Settings", new: Slice, suite: dict[str, Any]) -> list[Check] | None:
    """The checks of a small slice, or None where Spark is needed. In pandas the counts cost nothing more."""
    from lockstep.lake.small_commits import collect
    from lockstep.quality.engine import batch_of, run

    if not lake.is_small(new.rows):
        return None
    rows = collect(settings, new.table, new.where)
    if has_nan(rows):
        return None
    results = run(batch_of(new.table, rows.to_pandas()), suite["expectations"], _COUNTS)
    return _checks(suite, results, rows.num_rows)


def _in_spark(suite: dict[str, Any], rows: "DataFrame", count: int) -> list[Check]:
    """The checks of rows in Spark, which needs a job more for the values of each expectation: so only of those that fail."""
    from lockstep.quality.engine import batch_of, counts_rows, run

    expectations = suite["expectations"]
    batch = batch_of(suite["name"], rows)
    results = run(batch, expectations, "BOOLEAN_ONLY")
    is_met = [result["success"] and counts_rows(one) for one, result in zip(expectations, results, strict=True)]
    if not all(is_met):
        again = [one for one, met in zip(expectations, is_met, strict=True) if not met]
        details = iter(run(batch, again, _COUNTS))
        results = [result if met else next(details) for result, met in zip(results, is_met, strict=True)]
    return _checks(suite, results, count)


def _checks(suite: dict[str, Any], results: Iterable[dict[str, Any]], rows: int) -> list[Check]:
    pii = pii_columns(suite["name"])
    return [check(one, result, pii, rows) for one, result in zip(suite["expectations"], results, strict=True)]


def has_nan(rows: pa.Table) -> bool:
    """Whether a number is NaN: Spark takes it for a value, and pandas for a missing one."""
    numbers = (column for column in rows.columns if pa.types.is_floating(column.type))
    return any(pc.any(pc.is_nan(column)).as_py() for column in numbers)


def failures(settings: "Settings", table: str, rows: "DataFrame") -> list[str]:
    """One sentence for each check that would shut the gate of ``layer.name`` on these rows; none if it has no suite."""
    if table not in gated(settings):
        return []
    return [check.reason for check in _in_spark(load(settings, table), rows, 0) if check.shuts]
