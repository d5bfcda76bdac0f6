"""The gate: check the new rows of a table against its suite. When a check fails, nothing downstream of the table runs.

``import great_expectations`` takes seconds, so it is imported only when there are rows to check.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.quality import outcomes
from lockstep.quality.outcomes import TABLE, GateState, Outcome
from lockstep.quality.slices import Slice, pending
from lockstep.quality.suites import gated, load, pii_columns

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

# Three values show what is wrong with a column, and the message stays one line.
SAMPLES = 3


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
            + f"\nSee {TABLE.name}. Replace the rows by a replay, or change the suite in expectations/."
        )
        self.outcomes = outcomes


def run_gates(spark: "SparkSession", settings: "Settings", tables: Iterable[str], run_id: str) -> list[Outcome]:
    """Check the new rows of each table (``layer.name``) against its suite, and write the outcomes to ``ops.quality``.

    A row is new until its table passes a gate. Rows that failed are checked again, together with the rows after them, until
    a replay replaces them or the suite changes.

    Returns:
        One outcome for each table that had new rows.

    Raises:
        GateFailed: at least one check failed. The message names each table, expectation and some values. The outcomes of
            all tables are written before.
        SuiteMissing: a table has no suite.
    """
    with outcomes.TABLE.writing(spark, settings, run_id) as commit:
        before = GateState.of(commit.newest())
        slices = [pending(settings, table, before.positions.get(table, -1)) for table in tables]
        results = [validate(spark, settings, new) for new in slices if new]
        if not results:
            return []
        outcomes.write(commit, results, before, run_id)
    if any(outcome.failed for outcome in results):
        raise GateFailed(results)
    return results


def validate(spark: "SparkSession", settings: "Settings", new: Slice) -> Outcome:
    """Check a slice of a table against its suite. Great Expectations runs again for the details of each failed check.

    A small slice that passes is checked without Spark. What does not pass there is checked by Spark, whose word counts.
    """
    from lockstep.quality.engine import batch_of, run, store

    suite = load(settings, new.table)
    failed: tuple[str, ...] = ()
    result = _without_spark(settings, new, suite)
    if result is None or not result.success:
        batch = batch_of(settings, new.table, lake.read(spark, settings, new.table).where(new.where))
        result = run(batch, suite, "BOOLEAN_ONLY")
        failed = tuple(_reasons(batch, suite, result))
    store(settings, new.table, result)
    return Outcome(
        table=new.table,
        suite=suite["name"],
        success=bool(result.success),
        checks=len(result.results),
        failed=failed,
        rows=new.rows,
        slice=new.where,
        version=new.version,
        checked_at=datetime.now(UTC),
    )


def _without_spark(
    settings: "Settings", new: Slice, suite: dict[str, Any]
) -> "ExpectationSuiteValidationResult | None":
    """The result for a small slice, or None where Spark is needed."""
    from lockstep.lake.small_commits import collect
    from lockstep.quality.engine import batch_of, run

    if not lake.is_small(new.rows):
        return None
    rows = collect(settings, new.table, new.where)
    if has_nan(rows):
        return None
    return run(batch_of(settings, new.table, rows.to_pandas()), suite, "BOOLEAN_ONLY")


def has_nan(rows: pa.Table) -> bool:
    """Whether a number is NaN: Spark takes it for a value, and pandas for a missing one."""
    numbers = (column for column in rows.columns if pa.types.is_floating(column.type))
    return any(pc.any(pc.is_nan(column)).as_py() for column in numbers)


def failures(settings: "Settings", table: str, rows: "DataFrame") -> list[str]:
    """One sentence for each check that fails on rows which may be written to ``layer.name``; none if it has no suite."""
    if table not in gated(settings):
        return []
    from lockstep.quality.engine import batch_of, run

    suite = load(settings, table)
    batch = batch_of(settings, f"rows for {table}", rows)
    return _reasons(batch, suite, run(batch, suite, "BOOLEAN_ONLY"))


def _reasons(batch: "Batch", suite: dict[str, Any], result: "ExpectationSuiteValidationResult") -> list[str]:
    failed = [r.expectation_config for r in result.results if not r.success]
    return [reason for config in failed if config for reason in _details(batch, suite, config)]


def _details(batch: "Batch", suite: dict[str, Any], failed: "ExpectationConfiguration") -> list[str]:
    from lockstep.quality.engine import run

    kwargs = {key: value for key, value in failed.kwargs.items() if key != "batch_id"}
    expectation = {"type": failed.type, "kwargs": kwargs}
    details = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES}
    result = run(batch, {**suite, "expectations": [expectation]}, details)
    return [sentence(expectation, r.to_json_dict(), pii_columns(suite["name"])) for r in result.results]


def sentence(expectation: dict[str, Any], result: dict[str, Any], pii: frozenset[str]) -> str:
    """One line with the expectation that failed, for how many rows, and some of their values unless those are personal."""
    kwargs = expectation["kwargs"]
    arguments = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
    observed = result.get("result", {})
    text = f"{expectation['type']}({arguments})"
    if error := _error(result.get("exception_info", {})):
        return f"{text} could not be checked: {error}"
    columns = {value for key, value in kwargs.items() if key.startswith("column") and isinstance(value, str)}
    columns |= set(kwargs.get("column_list", ()))
    if "unexpected_count" in observed:
        text += f": {observed['unexpected_count']} of {observed.get('element_count')} rows do not hold"
    elif "observed_value" in observed and not columns & pii:
        text += f": observed {observed['observed_value']!r}"
    if columns & pii:
        return f"{text}; values of personal columns are not shown"
    samples = [value for value in observed.get("partial_unexpected_list") or [] if value is not None]
    return f"{text}, such as {samples}" if samples else text


def _error(info: dict[str, Any]) -> str | None:
    """The first line of the exception's message. Great Expectations has one report, or one for each metric."""
    reports = [info, *(value for value in info.values() if isinstance(value, dict))]
    messages = [str(r.get("exception_message")) for r in reports if r.get("raised_exception")]
    return messages[0].strip().partition("\n")[0] if messages else None
