"""Reconcile views: compare the windows that both layers have closed since the last run, explain differences, and record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.columns import ddl
from lockstep.definition.view import BEGINNING
from lockstep.reconcile import notify
from lockstep.reconcile.attribute import attribute
from lockstep.reconcile.compare import RESULT, by_window
from lockstep.reconcile.comparison import Comparison
from lockstep.reconcile.difference import Difference
from lockstep.reconcile.inputs import ComparisonInput, comparison_input
from lockstep.reconcile.record import TABLE, Reconciliation, last
from lockstep.reconcile.report import Report
from lockstep.reconcile.verdict import Verdict, WindowVerdict, window_verdicts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


@dataclass(frozen=True)
class Extent:
    """The windows of a comparison.

    Args:
        windows: how many there are.
        new: how many of them no run has settled before.
        first, last: the starts (UTC, naive) of the first and the last window that differs; None: none differs.
    """

    windows: int
    new: int
    first: datetime | None
    last: datetime | None


def reconcile(
    spark: "SparkSession", settings: "Settings", views: list[View], run_id: str, again_since: datetime | None = None
) -> list[Report]:
    """Compare each view's windows that both layers have closed since the last run, and record one row per window.

    A window that differs for no known cause, or for a cause that passes, is compared again by every run until it no longer
    does.

    Args:
        again_since: also compare the windows that ended after this instant (UTC) and are settled.
    """
    with lease(settings, TABLE, run_id):
        lake.create(spark, settings, TABLE, RESULT)
        _add_missing_columns(spark)
        return [_reconcile(spark, settings, view, run_id, again_since) for view in views]


def _add_missing_columns(spark: "SparkSession") -> None:
    """Add the columns that the table of an earlier release does not have."""
    existing = spark.table(TABLE).columns
    missing = {name: kind for name, kind in RESULT.items() if name not in existing}
    if missing:
        spark.sql(f"ALTER TABLE {TABLE} ADD COLUMNS ({ddl(missing)})")


def _reconcile(
    spark: "SparkSession", settings: "Settings", view: View, run_id: str, again_since: datetime | None
) -> Report:
    before = last(settings, view)
    settled_until = before.until if before else BEGINNING
    since = min(settled_until, again_since or settled_until)
    rows = comparison_input(spark, settings, view)
    if rows is None or rows.until <= since:
        return Report(view.name, Verdict.EQUAL, rows.until if rows else None, 0, 0)
    closed = view.closed(since, rows.until)
    rows = replace(rows, live=rows.live.where(closed), batch=rows.batch.where(closed))
    windows = by_window(rows.live, rows.batch, view).persist()
    try:
        extent = _extent(windows, settled_until)
        differences = _attributed(spark, settings, view, rows, extent)
        corrections = notify.publish_corrections(spark, settings, view, differences, run_id)
        verdicts = window_verdicts(differences)
        report = Report.of(view.name, rows.until, extent.windows, differences, verdicts, corrections)
        first_open = min((start for start, window in verdicts.items() if window.open), default=None)
        if first_open:
            extent = _extent(windows.where(F.col("window_start") < F.lit(first_open)), settled_until)
        settled = min(rows.until, first_open or rows.until)
        reconciliation = _next(before, view, report, run_id, settled, extent.new)
        _alert(spark, settings, view, report, verdicts, run_id)
        results = _results(spark, windows, view, verdicts, run_id)
        record = reconciliation.as_record()
        lake.append(results, settings, TABLE, ledger.txn(f"{TABLE}/{view.name}", record), record)
    finally:
        windows.unpersist()
    return report


def _next(
    before: Reconciliation | None, view: View, report: Report, run_id: str, settled: datetime, new: int
) -> Reconciliation:
    """The record of this run.

    Args:
        before: the record of the run before it.
        settled: the end (UTC) of the windows that no later run compares.
        new: how many windows this run has settled.
    """
    # Of an upserted view, every run compares all rows again.
    windows_before = before.windows if before and not view.upserts else 0
    return Reconciliation(
        view=view.name,
        seq=before.seq + 1 if before else 1,
        until=settled,
        run_id=run_id,
        windows=windows_before + new,
        unexplained=report.unexplained,
        causes=report.causes,
        sample=report.sample,
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


def _extent(windows: "DataFrame", settled_until: datetime) -> Extent:
    """How many windows there are, and between which of them the differences lie."""
    differs = F.when(F.col("keys") != F.col("equal"), F.col("window_start"))
    (row,) = windows.agg(
        F.count("*").alias("windows"),
        F.count_if(F.col("window_end") > F.lit(settled_until)).alias("new"),
        F.min(differs).alias("first"),
        F.max(differs).alias("last"),
    ).collect()
    return Extent(**row.asDict())


def _attributed(
    spark: "SparkSession", settings: "Settings", view: View, rows: ComparisonInput, extent: Extent
) -> list[Difference]:
    """Every key that differs, with its causes."""
    if extent.first is None:
        return []
    live, batch = rows.live, rows.batch
    if not view.upserts:
        # A keyed view is compared by the minute, and its rows lie inside of it.
        end = F.lit(extent.last) + F.expr("INTERVAL 1 MINUTE")
        inside = F.col(view.time_column).between(F.lit(extent.first), end)
        live, batch = live.where(inside), batch.where(inside)
    return attribute(Comparison(spark, settings, view, live, batch, rows.entry, rows.snapshot))


def _results(
    spark: "SparkSession",
    windows: "DataFrame",
    view: View,
    verdicts: Mapping[datetime, WindowVerdict],
    run_id: str,
) -> "DataFrame":
    """One row per window, in the columns of the table."""
    unexplained = F.lit(Verdict.UNEXPLAINED.value)
    causes = F.lit(None).cast("string")
    differs = unexplained
    if verdicts:
        rows = [(start, w.verdict.value, ", ".join(w.causes) or None) for start, w in verdicts.items()]
        attributed = spark.createDataFrame(rows, "window_start TIMESTAMP, differs STRING, causes STRING")
        windows = windows.join(F.broadcast(attributed), "window_start", "left")
        # A window without a verdict has only keys beyond attribute.MAX_KEYS.
        differs, causes = F.coalesce("differs", unexplained), F.col("causes")
    columns = {
        "view": F.lit(view.name),
        "verdict": F.when(F.col("keys") == F.col("equal"), Verdict.EQUAL.value).otherwise(differs),
        "run_id": F.lit(run_id),
        "reconciled_at": F.current_timestamp(),
        "causes": causes,
    }
    return windows.withColumns(columns).select(*RESULT)
