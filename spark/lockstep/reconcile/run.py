"""Reconcile every view: find the windows that both layers have closed since the last time, compare, and record."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.batch.rollup import gold_of
from lockstep.control import lease
from lockstep.definition import Keyed, View
from lockstep.ingest import ledger
from lockstep.live.query import live_of
from lockstep.reconcile.compare import RESULT, compare
from lockstep.reconcile.frontier import batch_final, live_final, same_position

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from lockstep.settings import Settings

TABLE = "ops.reconciliation"
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Report:
    """The verdict on one view.

    Args:
        until: all windows that ended by then (UTC) are compared; None when no window is closed in both layers yet.
        windows: how many windows this run compared.
        unexplained: how many of them differ without a named cause.
    """

    view: str
    verdict: str
    until: datetime | None
    windows: int
    unexplained: int
    sample: str | None = None


def reconcile(
    spark: "SparkSession", settings: "Settings", views: list[View], run_id: str, again_since: datetime | None = None
) -> list[Report]:
    """Compare each view's windows that closed in both layers since the last run, and record one row a window.

    A window that differs is compared again by every run until it no longer does.

    Args:
        again_since: compare the windows that ended after this instant (UTC) too, although they were compared before.
    """
    if not lake.exists(settings, TABLE):
        lake.create(spark, settings, TABLE, RESULT)
    with lease(settings, TABLE, run_id):
        return [_reconcile(spark, settings, view, run_id, again_since) for view in views]


def closed_until(settings: "Settings", view: View) -> datetime | None:
    """All of the view's rows that ended by then (UTC) are final in both layers; None when none can be.

    An upserted view has no final rows: it is compared as a whole, when both layers have seen the same of the log.
    """
    if isinstance(view, Keyed) and view.upserts:
        return datetime.now(UTC) if same_position(settings, view) else None
    # Positions first, rows later: what arrives in between cannot touch a window that is closed at these positions.
    passed = [live_final(settings, view), batch_final(settings, view)]
    known = [time for time in passed if time is not None]
    return min(known) if len(known) == len(passed) else None


def _closed(view: View, since: datetime, until: datetime) -> "Column":
    if not isinstance(view, Keyed):
        return (F.col("window_end") > F.lit(since)) & (F.col("window_end") <= F.lit(until))
    if view.upserts:
        return F.lit(True)
    return (F.col("at") >= F.lit(since)) & (F.col("at") < F.lit(until))


def _reconcile(
    spark: "SparkSession", settings: "Settings", view: View, run_id: str, again_since: datetime | None
) -> Report:
    before = last(settings, view)
    since = datetime.fromisoformat(before["until"]) if before else BEGINNING
    if again_since:
        since = min(since, again_since)
    until = closed_until(settings, view)
    if until is None or until <= since:
        return Report(view.name, "equal", until, 0, 0)
    closed = _closed(view, since, until)
    live = lake.read(spark, settings, live_of(view)).where(closed)
    batch = lake.read(spark, settings, gold_of(view)).where(closed)
    results = compare(live, batch, view).withColumns({"run_id": F.lit(run_id), "reconciled_at": F.current_timestamp()})
    results = results.persist()
    try:
        wrong = F.col("verdict") == "unexplained"
        total = results.agg(
            F.count("*").alias("windows"),
            F.count_if(wrong).alias("unexplained"),
            F.min(F.when(wrong, F.col("window_start"))).alias("first"),
            F.min_by("sample", F.when(wrong, F.col("window_start"))).alias("sample"),
        ).collect()[0]
        settled = min(until, total["first"].replace(tzinfo=UTC)) if total["first"] else until
        record = {
            "writer": "reconcile",
            "view": view.name,
            "seq": before.get("seq", 0) + 1,
            "until": settled.isoformat(),
            "run_id": run_id,
            "windows": before.get("windows", 0) + (0 if total["unexplained"] else total["windows"]),
            "unexplained": total["unexplained"],
            "sample": total["sample"],
        }
        lake.append(results, settings, TABLE, ledger.txn(f"{TABLE}/{view.name}", record), record)
    finally:
        results.unpersist()
    verdict = "unexplained" if total["unexplained"] else "equal"
    return Report(view.name, verdict, until, total["windows"], total["unexplained"], total["sample"])


def last(settings: "Settings", view: View) -> dict[str, Any]:
    """The record of the view's last reconciliation (``until``, ``windows`` settled so far, ``unexplained``); empty before it."""
    for commit in lake.commits(settings, TABLE):
        if commit.record.get("view") == view.name:
            return dict(commit.record)
    return {}
