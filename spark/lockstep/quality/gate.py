"""The gate: what is new in a table is held against its suite, and nothing downstream runs when it does not hold.

``import great_expectations`` takes seconds, so it happens only once there is something to look at.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.control.leases import lease
from lockstep.errors import LockstepError
from lockstep.quality import outcomes
from lockstep.quality.outcomes import Outcome
from lockstep.quality.slices import Slice, pending
from lockstep.quality.suites import gated, load, pii_columns

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

SAMPLES = 3


class GateFailed(LockstepError):
    """New rows of a table are not as expected."""


def gate(spark: "SparkSession", settings: "Settings", tables: Iterable[str], run_id: str) -> list[Outcome]:
    """Hold what is new in each table (``layer.name``) against its suite, and keep the outcomes in ``ops.quality``.

    New is what no gate has passed yet: rows that failed are looked at again, with those that came after them, until
    they are replaced or the suite is changed.

    Returns:
        One outcome per table that had anything new; none when nothing was.

    Raises:
        GateFailed: names each table, expectation and a sample; the outcomes are kept all the same.
        SuiteMissing: a table has no suite.
    """
    with lease(settings, outcomes.TABLE, run_id):
        before = outcomes.passed(settings)
        new = [part for table in tables if (part := pending(settings, table, before.positions.get(table, -1)))]
        if not new:
            return []
        found = [validate(spark, settings, part) for part in new]
        outcomes.write(spark, settings, found, before, run_id)
    wrong = [f"{o.table} ({o.slice}): {reason}" for o in found for reason in o.failed]
    if wrong:
        raise GateFailed(
            "The gate is shut, nothing downstream runs:\n  "
            + "\n  ".join(wrong)
            + f"\nSee {outcomes.TABLE}. Replace the rows by a replay, or change the suite in expectations/."
        )
    return found


def is_open(settings: "Settings", table: str) -> bool:
    """Whether every row of the table has passed its gate; needs no Spark."""
    return pending(settings, table, outcomes.passed(settings).positions.get(table, -1)) is None


def validate(spark: "SparkSession", settings: "Settings", part: Slice) -> Outcome:
    """Hold a slice of a table against its suite: once for yes or no, and again for the details of what failed."""
    from lockstep.quality.engine import batch_of, run, store

    suite = load(settings, part.table)
    batch = batch_of(settings, part.table, lake.read(spark, settings, part.table).where(part.where))
    result = run(batch, suite, "BOOLEAN_ONLY")
    store(settings, part.table, result)
    return Outcome(
        table=part.table,
        suite=suite["name"],
        success=bool(result.success),
        checks=len(result.results),
        failed=tuple(_reasons(batch, suite, result)),
        rows=part.rows,
        slice=part.where,
        version=part.version,
        checked_at=datetime.now(UTC),
    )


def failures(settings: "Settings", table: str, rows: "DataFrame") -> list[str]:
    """What the suite of ``layer.name`` says against rows that may become its own; nothing where it has no suite."""
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
    shown = {"type": failed.type, "kwargs": kwargs}
    result = run(
        batch, {**suite, "expectations": [shown]}, {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES}
    )
    return [sentence(shown, r.to_json_dict(), pii_columns(suite["name"])) for r in result.results]


def sentence(expectation: dict[str, Any], result: dict[str, Any], pii: frozenset[str]) -> str:
    """Say in one line which expectation does not hold, how often, and three of the values, unless they are personal."""
    kwargs = expectation["kwargs"]
    arguments = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
    found = result.get("result", {})
    text = f"{expectation['type']}({arguments})"
    if error := _error(result.get("exception_info", {})):
        return f"{text} could not be checked: {error}"
    columns = {value for key, value in kwargs.items() if key.startswith("column") and isinstance(value, str)}
    columns |= set(kwargs.get("column_list", ()))
    if "unexpected_count" in found:
        text += f": {found['unexpected_count']} of {found.get('element_count')} rows do not hold"
    elif "observed_value" in found and not columns & pii:
        text += f": observed {found['observed_value']!r}"
    if columns & pii:
        return f"{text}; values of personal columns are not shown"
    samples = [value for value in found.get("partial_unexpected_list") or [] if value is not None]
    return f"{text}, such as {samples}" if samples else text


def _error(info: dict[str, Any]) -> str | None:
    """The first line of what was raised: Great Expectations gives one report, or one per metric."""
    reports = [info, *(value for value in info.values() if isinstance(value, dict))]
    messages = [str(r.get("exception_message")) for r in reports if r.get("raised_exception")]
    return messages[0].strip().partition("\n")[0] if messages else None
