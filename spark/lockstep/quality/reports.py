"""What ``ops.quality`` has of the gates, read without Spark."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.definition.view import literal
from lockstep.lake import small_commits
from lockstep.quality.checks import Check
from lockstep.quality.outcomes import TABLE, Outcome
from lockstep.suite_files import Severity

if TYPE_CHECKING:
    from lockstep.settings import Settings


def outcomes(
    settings: "Settings", since: datetime, until: datetime | None = None, table: str | None = None
) -> list[tuple[Outcome, str]]:
    """The outcomes of the gates in ``[since, until)`` (UTC), each with the id of its run, the newest first.

    Args:
        table: only those of this table.
    """
    if not lake.exists(settings, TABLE.name):
        return []
    where = f"checked_at >= {literal(since)}"
    if until:
        where += f" AND checked_at < {literal(until)}"
    rows = small_commits.collect(settings, TABLE.name, where).to_pylist()
    found = [_outcome(row) for row in rows if table in (None, row["table"])]
    return sorted(found, key=lambda one: one[0].checked_at, reverse=True)


def _outcome(row: dict[str, Any]) -> tuple[Outcome, str]:
    # Rows from before there were details have no results, and sentences alone.
    reasons = iter([*(row["failed"] or []), *(row.get("warned") or [])])
    results = row.get("results")
    if results is None:
        passed = row["checks"] - len(row["failed"])
        checks = [Check("(no details are kept)", (), Severity.FAIL, success=True)] * passed
        checks += [
            Check("(no details are kept)", (), Severity.FAIL, success=False, reason=reason) for reason in reasons
        ]
    else:
        checks = [_check(result, row) for result in results]
    at = row["checked_at"].replace(tzinfo=row["checked_at"].tzinfo or UTC)
    outcome = Outcome(row["table"], row["suite"], tuple(checks), row["rows"], row["slice"], -1, at)
    return outcome, row["run_id"]


def _check(result: dict[str, Any], row: dict[str, Any]) -> Check:
    sentences = [*row["failed"], *(row["warned"] or [])]
    own = [one for one in sentences if one.startswith(result["expectation"])] if not result["success"] else []
    return Check(
        result["expectation"],
        tuple(result["columns"]),
        Severity(result["severity"]),
        result["success"],
        result["observed"],
        result["unexpected"],
        result["elements"],
        own[0] if own else "",
    )
