"""Reconcile a view: compare the windows that both layers have closed since the last run, explain differences, and record.

Spark compares the rows where they are many, or differ. What it finds is one row per window, which is worked on and committed
without it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.view import BEGINNING
from lockstep.reconcile import notify
from lockstep.reconcile.attribute import attribute
from lockstep.reconcile.changed import Compared, First, compared, first_to_compare, may_differ
from lockstep.reconcile.compare import by_window
from lockstep.reconcile.comparison import Comparison
from lockstep.reconcile.difference import Difference
from lockstep.reconcile.equal import compare_few, together
from lockstep.reconcile.inputs import ComparisonInput, comparison_input
from lockstep.reconcile.record import COLUMNS, TABLE, Reconciliation, last
from lockstep.reconcile.report import Report, worst
from lockstep.reconcile.verdict import Verdict, WindowVerdict, joined, window_verdicts
from lockstep.session import collect, to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@dataclass(frozen=True)
class Extent:
    """The windows of a comparison.

    Args:
        windows: how many there are.
        new: how many of them no run has settled before.
        first, last: the starts (UTC) of the first and the last window that differs; None: none differs.
    """

    windows: int
    new: int
    first: datetime | None
    last: datetime | None

    @classmethod
    def of(cls, windows: pa.Table, settled_until: datetime) -> Self:
        """The extent of some rows of ``by_window``."""
        differing = windows.filter(pc.field("keys") != pc.field("equal"))
        first, last = pc.min_max(differing["window_start"]).as_py().values()
        return cls(windows.num_rows, windows.filter(pc.field("window_end") > settled_until).num_rows, first, last)


def reconcile(
    spark: "SparkSession", settings: "Settings", view: View, run_id: str, again_since: datetime | None = None
) -> Report:
    """Compare the view's windows that both layers have closed since the last run, and record one row per window.

    A window that differs for no known cause, or for a cause that passes, is compared again by every run until it no longer
    does.

    Args:
        again_since: also compare the windows that ended after this instant (UTC) and are settled.
    """
    with lease(settings, f"{TABLE.name}/{view.name}", run_id):
        before = last(settings, view)
        settled_until = before.until if before else BEGINNING
        since = min(settled_until, again_since or settled_until)
        rows = comparison_input(spark, settings, view)
        if rows is None or rows.until <= since:
            return Report(view.name, Verdict.EQUAL, rows.until if rows else None, 0, 0)
        closed = view.closed(since, rows.until)
        if view.upserts and again_since is None:
            closed = may_differ(settings, view, before.compared if before else None, rows)
        rows = replace(rows, live=rows.live.where(closed), batch=rows.batch.where(closed))
        windows, rows = _windows(spark, settings, view, rows, closed)
        extent = Extent.of(windows, settled_until)
        verdicts: dict[datetime, WindowVerdict] = {}
        shown: list[Difference] = []
        corrections, opened = 0, list[First | None]()
        for differences in _attributed(spark, settings, view, rows, extent):
            corrections += notify.publish_corrections(spark, settings, view, differences, run_id)
            verdicts = joined(verdicts, window_verdicts(differences))
            shown = worst([*shown, *differences])
            opened.append(first_to_compare(view, differences))
        report = Report.of(view.name, rows.until, extent.windows, shown, verdicts, corrections)
        first_open = min((start for start, window in verdicts.items() if window.open), default=None)
        if first_open:
            extent = Extent.of(windows.filter(pc.field("window_start") < first_open), settled_until)
        settled = min(rows.until, first_open or rows.until)
        _alert(spark, settings, view, report, verdicts, run_id)
        then = compared(settings, view, rows, opened)
        reconciliation = _next(before, view, report, run_id, settled, extent.new, then)
        _write(spark, settings, _results(windows, view, verdicts, run_id), reconciliation)
    return report


def _windows(
    spark: "SparkSession", settings: "Settings", view: View, rows: ComparisonInput, closed: str
) -> tuple[pa.Table, ComparisonInput]:
    """The rows of ``by_window``, and the rows of both layers, or of few only those among which some differ."""
    few = compare_few(settings, view, rows, closed)
    if few is None:
        return collect(by_window(rows.live, rows.batch, view)), rows
    if not few.others:
        return few.windows, rows
    others = replace(rows, live=to_dataframe(spark, few.live), batch=to_dataframe(spark, few.batch))
    return together(few.windows, collect(by_window(others.live, others.batch, view))), others


def _next(
    before: Reconciliation | None,
    view: View,
    report: Report,
    run_id: str,
    settled: datetime,
    new: int,
    compared: Compared | None,
) -> Reconciliation:
    """The record of this run.

    Args:
        before: the record of the run before it.
        settled: the end (UTC) of the windows that no later run compares.
        new: how many windows this run has settled.
        compared: of a view that upserts.
    """
    windows_before = before.windows if before else 0
    return Reconciliation(
        view=view.name,
        until=settled,
        run_id=run_id,
        windows=(report.windows or windows_before) if view.upserts else windows_before + new,
        unexplained=report.unexplained,
        causes=report.causes,
        sample=report.sample,
        compared=compared,
    )


def _alert(
    spark: "SparkSession",
    settings: "Settings",
    view: View,
    report: Report,
    verdicts: Mapping[datetime, WindowVerdict],
    run_id: str,
) -> None:
    """Alert if a window is unexplained; the alert names the first one."""
    unexplained = [start for start, window in verdicts.items() if window.verdict is Verdict.UNEXPLAINED]
    if unexplained:
        text = f"{view.name}: {report.unexplained} of {report.windows} windows differ, such as {report.sample}"
        notify.publish_alert(spark, settings, view, min(unexplained), text, run_id)


def _attributed(
    spark: "SparkSession", settings: "Settings", view: View, rows: ComparisonInput, extent: Extent
) -> Iterable[list[Difference]]:
    """Every key that differs, with its causes, some at a time."""
    if extent.first is None:
        return ()
    live, batch = rows.live, rows.batch
    if not view.upserts:
        # A keyed view is compared by the minute, and its rows lie inside of it.
        end = F.lit(extent.last) + F.expr("INTERVAL 1 MINUTE")
        inside = F.col(view.time_column).between(F.lit(extent.first), end)
        live, batch = live.where(inside), batch.where(inside)
    return attribute(Comparison(spark, settings, view, live, batch, rows.entry, rows.snapshot))


def _results(windows: pa.Table, view: View, verdicts: Mapping[datetime, WindowVerdict], run_id: str) -> pa.Table:
    """One row per window, in the columns of the table.

    Args:
        windows: the rows of ``by_window``.
        verdicts: by start, the verdict on each window that differs.
    """
    equal = pc.equal(windows["keys"], windows["equal"]).to_pylist()
    found = [verdicts.get(start) for start in windows["window_start"].to_pylist()]
    # The rows were read twice. A window that only differed the first time is compared again.
    differs = [window.verdict if window else Verdict.UNEXPLAINED for window in found]
    results = {
        "view": [view.name] * len(found),
        "verdict": [Verdict.EQUAL if is_equal else verdict for is_equal, verdict in zip(equal, differs, strict=True)],
        "run_id": [run_id] * len(found),
        "causes": [", ".join(window.causes) or None if window else None for window in found],
    }
    reconciled_at = pa.repeat(pa.scalar(datetime.now(UTC), windows["window_start"].type), len(found))
    columns = {name: pa.array(values, pa.string()) for name, values in results.items()} | {
        "reconciled_at": reconciled_at
    }
    return pa.table({name: columns[name] if name in columns else windows[name] for name in COLUMNS})


def _write(spark: "SparkSession", settings: "Settings", results: pa.Table, reconciliation: Reconciliation) -> None:
    """Commit the rows and the record. Views are compared at the same time, but one at a time is written."""
    with TABLE.writing(spark, settings, reconciliation.run_id) as commit:
        commit.append(results, reconciliation.as_record(), reconciliation.view)
