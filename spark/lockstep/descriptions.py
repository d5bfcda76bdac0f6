"""One result for each table that a task has worked on, from what the work has found or written. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep.ledger.ranges import size
from lockstep.results import Outcome, TableResult

if TYPE_CHECKING:
    from lockstep.ledger import Entry
    from lockstep.maintain.run import MaintenanceResult
    from lockstep.quality.outcomes import Outcome as Checked
    from lockstep.reconcile.report import Report
    from lockstep.replay.plan import Plan
    from lockstep.replay.stages import Compared, Shadowed

_TIME = "%F %H:%M"
# The counts of the rows that were written: they have a column of their own.
_WRITTEN = {"rows", "silver"}


def written(table: str, entry: "Entry") -> TableResult:
    """What a commit has taken: its offsets, how many rows became what, and until when the table is final."""
    counts = [f"{count:,} {name}" for name, count in entry.counts.items() if count and name not in _WRITTEN]
    until = [f"final until {entry.until:{_TIME}}"] if entry.until else []
    detail = ", ".join([f"{size(entry.ranges):,} offsets", *counts, *until])
    return TableResult(table, Outcome.DONE, rows=entry.rows, detail=detail)


def checked(outcome: "Checked") -> TableResult:
    """What a gate says of the new rows of a table."""
    warnings = [f"warning: {reason}" for reason in outcome.warned]
    if outcome.success:
        detail = "; ".join([f"passed {len(outcome.results)} checks", *warnings])
        return TableResult(outcome.table, Outcome.DONE, outcome.rows, detail=detail)
    detail = f"the gate is shut: {'; '.join([*outcome.failed, *warnings])}"
    return TableResult(outcome.table, Outcome.FAILED, outcome.rows, detail=detail)


def compared(view: str, report: "Report") -> TableResult:
    """Whether live and batch agree on a view."""
    until = f", until {report.until:{_TIME}}" if report.until else ""
    if report.unexplained:
        detail = f"{report.unexplained} of {report.windows} windows differ for no known cause, such as {report.sample}"
        return TableResult(view, Outcome.FAILED, detail=detail)
    if not report.windows:
        return TableResult(view, Outcome.NOTHING_NEW, detail=f"no window was closed{until}")
    causes = "".join(f", {cause}: {windows}" for cause, windows in report.causes.items())
    return TableResult(view, Outcome.DONE, detail=f"{report.windows:,} windows {report.verdict}{causes}{until}")


def compacted(result: "MaintenanceResult") -> TableResult:
    """What the housekeeping of a table has done."""
    changed = Outcome.DONE if result.files_before != result.files_after else Outcome.NOTHING_NEW
    return TableResult(
        result.table, changed, detail=f"{result.files_before:,} files before, {result.files_after:,} after"
    )


def planned(plan: "Plan") -> Iterator[TableResult]:
    """What a replay will read, and the rows of the views that it will compute again."""
    for part in plan.parts:
        yield TableResult(part.source, Outcome.DONE, part.rows, detail=f"{size(part.ranges):,} offsets will be read")
    for target in plan.targets:
        span = _span((target.low, target.high)) if target.low and target.high else "what these rows touch"
        yield TableResult(f"gold.{target.view}", Outcome.DONE, detail=f"{span} will be computed")


def shadowed(result: "Shadowed") -> Iterator[TableResult]:
    """What a replay has computed beside the tables."""
    for stream, part in result.silver.items():
        yield TableResult(f"silver.{stream}", Outcome.DONE, sum(part.counts.values()), detail="computed in its shadow")
    for view, gold in result.gold.items():
        if gold.span is None:
            yield TableResult(f"gold.{view}", Outcome.NOTHING_NEW, detail="no row of it changes")
        else:
            yield TableResult(f"gold.{view}", Outcome.DONE, detail=f"{_span(gold.span)} computed in its shadow")


def differing(result: "Compared") -> Iterator[TableResult]:
    """What the promotion of a replay would change."""
    for table, diff in result.tables.items():
        kinds = ("equal", "changed", "added", "removed")
        counts = ", ".join(f"{count:,} {kind}" for kind in kinds if (count := getattr(diff, kind)))
        failed = "".join(f"; its suite does not hold: {check}" for check in result.checks.get(table, ()))
        yield TableResult(table, Outcome.DONE, detail=f"{diff.windows:,} windows: {counts or 'none'}{failed}")


def committed(versions: Mapping[str, int], action: str) -> Iterator[TableResult]:
    """What the commits of a replay have done.

    Args:
        versions: the version of the commit of each table.
    """
    return (TableResult(table, Outcome.DONE, detail=f"{action} in version {v}") for table, v in versions.items())


def _span(span: tuple[datetime, datetime]) -> str:
    return f"[{span[0]:{_TIME}}, {span[1]:{_TIME}})"
