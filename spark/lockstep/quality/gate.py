"""The gate: check the new rows of a table against its suite. When a check fails that is not a warning, the gate is shut.

Then nothing downstream of the table runs, and readers keep the last version that passed.

``import great_expectations`` takes seconds, so it is imported only when there are rows to check.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from lockstep import lake
from lockstep.errors import Failures, LedgerBroken, LockstepError
from lockstep.failpoints import failpoint
from lockstep.quality import docs, outcomes
from lockstep.quality.checks import Check, check
from lockstep.quality.distributions import Counts, counted, filled, follows_history, name_of
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
        unread: by table that could not be read, the reason. Its gate stays shut.
    """

    def __init__(self, outcomes: list[Outcome], unread: Mapping[str, Exception] = MappingProxyType({})) -> None:
        reasons = [f"{o.table} ({o.slice}): {reason}" for o in outcomes for reason in o.failed]
        what_to_do = (
            "\n`lockstep quality show TABLE` and the data docs have each check and its trend. Replace the rows by a replay, or "
            "change the suite in expectations/."
        )
        super().__init__(
            "The gate is shut, nothing downstream runs:\n  "
            + "\n  ".join([*reasons, *(f"{table} could not be checked: {error}" for table, error in unread.items())])
            + (what_to_do if reasons else "")
        )
        self.outcomes, self.unread = outcomes, unread


def run_gates(spark: "SparkSession", settings: "Settings", tables: Iterable[str], run_id: str) -> list[Outcome]:
    """Check the new rows of each table (``layer.name``) against its suite, and write the outcomes to ``ops.quality``.

    A row is new until its table passes a gate. Rows that failed are checked again, together with the rows after them, until
    a replay replaces them or the suite changes.

    Returns:
        One outcome for each table that had new rows.

    Raises:
        GateFailed: at least one check failed that is not a warning, or a table could not be read. The message names each
            table, expectation and some values. The outcomes of all other tables are written before.
        SuiteMissing: a table has no suite.
    """
    with outcomes.TABLE.writing(spark, settings, run_id) as commit:
        before = GateState.of(commit.newest())
        results, unread = _validate_each(spark, settings, tables, before)
        if results:
            outcomes.write(commit, results, before, run_id)
            docs.add(settings, results, run_id)
    if results:
        failpoint("gate-passed")
    if unread or any(outcome.failed for outcome in results):
        raise GateFailed(results, unread)
    return results


def _validate_each(
    spark: "SparkSession", settings: "Settings", tables: Iterable[str], before: GateState
) -> tuple[list[Outcome], Failures]:
    """The outcome of each table that has new rows, and why others could not be read."""
    results, unread = list[Outcome](), Failures()
    for table in tables:
        with unread.of(table, LedgerBroken, DeltaError, PySparkException):
            if new := pending(settings, table, before.positions.get(table, -1)):
                results.append(validate(spark, settings, new, before.distributions.get(table, {})))
    return results, unread


def validate(
    spark: "SparkSession", settings: "Settings", new: Slice, histories: Mapping[str, Counts] = MappingProxyType({})
) -> Outcome:
    """Check a slice of a table against its suite.

    A small slice that passes is checked without Spark. What shuts the gate there is checked by Spark, whose word counts.

    Args:
        histories: by expectation that follows history, the counts of the rows before.
    """
    suite_digest, suite = digest(settings, new.table), load(settings, new.table)
    asked = [filled(one, histories.get(name_of(one), ()), new.rows) for one in suite["expectations"]]
    results = _without_spark(settings, new, asked)
    checks = _checks(suite, results, new.rows) if results else []
    if results is None or any(check.shuts for check in checks):
        results = _in_spark(suite["name"], asked, lake.read(spark, settings, new.table).where(new.where))
        checks = _checks(suite, results, new.rows)
    counts = {
        name_of(one): counted(one, result, new.rows)
        for one, result in zip(suite["expectations"], results, strict=True)
        if follows_history(one)
    }
    return Outcome(
        table=new.table,
        suite=suite["name"],
        results=tuple(checks),
        rows=new.rows,
        slice=new.where,
        version=new.version,
        checked_at=datetime.now(UTC),
        suite_digest=suite_digest,
        counts=counts,
    )


def _without_spark(settings: "Settings", new: Slice, expectations: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The results of a small slice, or None where Spark is needed. In pandas the counts cost nothing more."""
    from lockstep.lake.small_commits import collect
    from lockstep.quality.engine import batch_of, run

    if not lake.is_small(new.rows):
        return None
    rows = collect(settings, new.table, new.where)
    if has_nan(rows):
        return None
    return run(batch_of(new.table, rows.to_pandas()), expectations, _COUNTS)


def _in_spark(table: str, expectations: list[dict[str, Any]], rows: "DataFrame") -> list[dict[str, Any]]:
    """The results of rows in Spark, which needs a job more for the values of each expectation: so only of those that fail.

    What compares a value of the table is asked once, with that value.
    """
    from lockstep.quality.engine import batch_of, counts_rows, run

    batch = batch_of(table, rows)
    of_rows = [number for number, one in enumerate(expectations) if counts_rows(one)]
    results = dict(zip(of_rows, run(batch, [expectations[n] for n in of_rows], "BOOLEAN_ONLY"), strict=True))
    again = [n for n in range(len(expectations)) if n not in results or not results[n]["success"]]
    if again:
        results |= dict(zip(again, run(batch, [expectations[n] for n in again], _COUNTS), strict=True))
    return [results[number] for number in range(len(expectations))]


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
    suite = load(settings, table)
    # The history is of rows that are in the table, and these are not yet.
    asked = [filled(one, (), 0) for one in suite["expectations"]]
    return [check.reason for check in _checks(suite, _in_spark(suite["name"], asked, rows), 0) if check.shuts]
