"""Reconcile every view: find the windows that both layers have closed since the last time, compare, attribute, and record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.columns import ddl
from lockstep.definition.tables import gold_of, live_of
from lockstep.definition.view import BEGINNING
from lockstep.live.frontier import (
    LiveSnapshot,
    batch_final,
    checkpoint_location,
    live_final,
    live_position,
    live_within,
)
from lockstep.reconcile import causes, notify
from lockstep.reconcile.attribute import Case, attribute, describe
from lockstep.reconcile.causes import Difference
from lockstep.reconcile.compare import RESULT, compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

TABLE = "ops.reconciliation"


@dataclass(frozen=True)
class Report:
    """The verdict on one view.

    Args:
        verdict: ``equal``, ``explained`` (all that differs has a named cause) or ``unexplained``.
        until: all windows that ended by then (UTC) are compared; None when no window is closed in both layers yet.
        windows: how many windows this run compared.
        unexplained: how many of them differ without a named cause.
        causes: by cause, in how many of them it was found.
        differences: some of the keys that differ, those without a cause first.
        corrections: how many live rows were corrected by this run.
    """

    view: str
    verdict: str
    until: datetime | None
    windows: int
    unexplained: int
    sample: str | None = None
    causes: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    corrections: int = 0


@dataclass(frozen=True)
class ComparisonInput:
    """What is compared: the rows of both layers that lie before ``until`` (UTC), and what of the log they come from."""

    until: datetime
    live: "DataFrame"
    batch: "DataFrame"
    done: ledger.Entry
    seen: LiveSnapshot


def reconcile(
    spark: "SparkSession", settings: "Settings", views: list[View], run_id: str, again_since: datetime | None = None
) -> list[Report]:
    """Compare each view's windows that closed in both layers since the last run, and record one row a window.

    A window that differs for no known reason, or for one that passes, is compared again by every run until it no longer does.

    Args:
        again_since: compare the windows that ended after this instant (UTC) too, although they were compared before.
    """
    with lease(settings, TABLE, run_id):
        lake.create(spark, settings, TABLE, RESULT)
        _widen(spark)
        return [_reconcile(spark, settings, view, run_id, again_since) for view in views]


def _widen(spark: "SparkSession") -> None:
    """Add the columns that a table of an earlier release lacks."""
    known = spark.table(TABLE).columns
    missing = {name: kind for name, kind in RESULT.items() if name not in known}
    if missing:
        spark.sql(f"ALTER TABLE {TABLE} ADD COLUMNS ({ddl(missing)})")


def _comparison_input(spark: "SparkSession", settings: "Settings", view: View) -> ComparisonInput | None:
    """What of the view both layers have closed; None while that is nothing.

    An upserted view has no closed rows: live is taken as it was when it knew no more of the log than gold.
    """
    newest = next(lake.commits(settings, gold_of(view)), None)
    done = ledger.latest(settings, gold_of(view))
    if newest is None or done is None or not lake.exists(settings, live_of(view)):
        return None
    if view.upserts:
        seen = live_within(settings, view, done)
        if seen is None:
            return None
        live = lake.read(spark, settings, live_of(view), seen.version)
        # A new entry may have come between the two looks at the log.
        batch = lake.read(spark, settings, gold_of(view), max(newest.version, done.version))
        return ComparisonInput(max(seen.at, datetime.fromtimestamp(newest.timestamp / 1000, UTC)), live, batch, done, seen)
    # Positions first, rows later: what arrives in between cannot touch a window that is closed at these positions.
    place = checkpoint_location(settings, view)
    position = {topic: live_position(place, topic) for topic in (CONTRACTS[s].topic for s in view.streams)}
    passed = [live_final(settings, view), batch_final(settings, view)]
    known = [time for time in passed if time is not None]
    if len(known) < len(passed):
        return None
    now = datetime.now(UTC)
    seen = LiveSnapshot(0, now, position, known[0], now)
    live, batch = (lake.read(spark, settings, table) for table in (live_of(view), gold_of(view)))
    return ComparisonInput(min(known), live, batch, done, seen)


def _reconcile(
    spark: "SparkSession", settings: "Settings", view: View, run_id: str, again_since: datetime | None
) -> Report:
    before = last(settings, view)
    compared = datetime.fromisoformat(before["until"]) if before else BEGINNING
    since = min(compared, again_since or compared)
    ground = _comparison_input(spark, settings, view)
    if ground is None or ground.until <= since:
        return Report(view.name, "equal", ground.until if ground else None, 0, 0)
    closed = view.closed(since, ground.until)
    live, batch = ground.live.where(closed), ground.batch.where(closed)
    windows = compare(live, batch, view).persist()
    try:
        extent = _extent(windows, compared)
        found = _attributed(spark, settings, view, ground, extent, live, batch)
        corrected = notify.corrections(spark, settings, view, found, run_id)
        verdicts = causes.by_window(found)
        report = _report(view, ground.until, extent["windows"], found, verdicts, corrected)
        held = min((w for w, v in verdicts.items() if v["passing"] or v["verdict"] == "unexplained"), default=None)
        settled = min(ground.until, held) if held else ground.until
        new = (
            extent["new"]
            if held is None
            else _extent(windows.where(F.col("window_start") < F.lit(held)), compared)["new"]
        )
        record = {
            "writer": "reconcile",
            "view": view.name,
            "seq": before.get("seq", 0) + 1,
            "until": settled.isoformat(),
            "run_id": run_id,
            "windows": new if view.upserts else before.get("windows", 0) + new,
            "unexplained": report.unexplained,
            "causes": report.causes,
            "sample": report.sample,
        }
        if report.unexplained:
            text = f"{view.name}: {report.unexplained} of {report.windows} windows differ, such as {report.sample}"
            first = min(w for w, v in verdicts.items() if v["verdict"] == "unexplained")
            notify.alert(spark, settings, view, first, text, run_id)
        results = _results(spark, windows, view, verdicts, run_id)
        lake.append(results, settings, TABLE, ledger.txn(f"{TABLE}/{view.name}", record), record)
    finally:
        windows.unpersist()
    return report


def _extent(windows: "DataFrame", compared: datetime) -> dict[str, Any]:
    """How many windows there are, how many are ``new`` since then, and between which starts those lie that differ."""
    differs = F.when(F.col("keys") != F.col("equal"), F.col("window_start"))
    found = windows.agg(
        F.count("*").alias("windows"),
        F.count_if(F.col("window_end") > F.lit(compared)).alias("new"),
        F.min(differs).alias("first"),
        F.max(differs).alias("last"),
    )
    return dict(found.collect()[0].asDict())


def _attributed(
    spark: "SparkSession",
    settings: "Settings",
    view: View,
    ground: ComparisonInput,
    extent: Mapping[str, Any],
    live: "DataFrame",
    batch: "DataFrame",
) -> list[Difference]:
    """Every key that differs, with its causes."""
    if extent["first"] is None:
        return []
    if not view.upserts:
        inside = F.col(view.time_column).between(F.lit(extent["first"]), F.lit(extent["last"]) + F.expr("INTERVAL 1 MINUTE"))
        live, batch = live.where(inside), batch.where(inside)
    return attribute(Case(spark, settings, view, live, batch, ground.done, ground.seen))


def _report(
    view: View,
    until: datetime,
    windows: int,
    found: list[Difference],
    verdicts: Mapping[datetime, Mapping[str, Any]],
    corrected: int,
) -> Report:
    unexplained = sum(v["verdict"] == "unexplained" for v in verdicts.values())
    causes: dict[str, int] = {}
    for cause in (cause for v in verdicts.values() for cause in v["causes"]):
        causes[cause] = causes.get(cause, 0) + 1
    shown = tuple(describe(found))
    return Report(
        view=view.name,
        verdict="unexplained" if unexplained else "explained" if verdicts else "equal",
        until=until,
        windows=windows,
        unexplained=unexplained,
        sample=str(shown[0]) if unexplained else None,
        causes=causes,
        differences=shown,
        corrections=corrected,
    )


def _results(
    spark: "SparkSession",
    windows: "DataFrame",
    view: View,
    verdicts: Mapping[datetime, Mapping[str, Any]],
    run_id: str,
) -> "DataFrame":
    """The rows of the table, in its columns."""
    rows = [(start, v["verdict"], ", ".join(v["causes"]) or None) for start, v in verdicts.items()]
    known = spark.createDataFrame(rows, "window_start TIMESTAMP, found STRING, causes STRING")
    judged = windows.join(F.broadcast(known), "window_start", "left") if rows else windows
    same = F.col("keys") == F.col("equal")
    verdict = F.when(same, "equal").otherwise(F.coalesce("found", F.lit("unexplained")) if rows else "unexplained")
    more = {
        "view": F.lit(view.name),
        "verdict": verdict,
        "run_id": F.lit(run_id),
        "reconciled_at": F.current_timestamp(),
        "causes": F.col("causes") if rows else F.lit(None).cast("string"),
    }
    return judged.withColumns(more).select(*RESULT)


def last(settings: "Settings", view: View) -> dict[str, Any]:
    """The record of the view's last reconciliation (``until``, ``windows`` settled so far, ``unexplained``); empty before it."""
    for commit in lake.commits(settings, TABLE):
        if commit.record.get("view") == view.name:
            return dict(commit.record)
    return {}
