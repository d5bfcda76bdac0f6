"""Run a view as a batch job: recompute whole windows from silver, and put them in the place of the old ones.

Gold is always the view over exactly the silver rows below the position in its ledger, however it was reached.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.control import lease
from lockstep.ingest import ledger
from lockstep.ingest.ranges import Range, size, to_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings
    from lockstep.views import View

PROPERTIES = {
    "delta.setTransactionRetentionDuration": "interval 400 days",
    "delta.logRetentionDuration": "interval 400 days",
}


def gold_of(view: "View") -> str:
    """The view's table in the batch layer."""
    return f"gold.{view.name}"


def roll_up(spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> ledger.Entry | None:
    """Bring gold up to silver: recompute the windows that the new rows touch.

    Returns:
        The new entry, whose counts add up to the silver rows taken (``silver = counted + ignored + side``), or None when
        there was nothing new.
    """
    source_table, table = f"silver.{view.input}", gold_of(view)
    with lease(settings, table, run_id):
        source, done = ledger.latest(settings, source_table), ledger.latest(settings, table)
        if source is None:
            return None
        ranges = ledger.untaken(settings, source, done, 1 << 62)
        if size(ranges) == 0:
            return None
        if done is None:
            lake.create(spark, settings, table, view.columns, properties=PROPERTIES)
        silver = lake.read(spark, settings, source_table, source.version)
        new = _summary(silver.where(to_where(ranges, "_partition", "_offset")), view)
        low, high = view.windows_of(new["first"], new["last"]) if new["first"] else (None, None)
        counts = {"counted": new["counted"], "ignored": new["ignored"], "side": 0}
        mixed = done is not None and not ledger.untouched(settings, done)
        record = ledger.record(
            "rollup", done, run_id, ranges, mixed=mixed, counts=counts, source_version=source.version
        )
        _replace(silver, settings, view, low, high, record)
        return ledger.latest(settings, table)


def rebuild(
    spark: "SparkSession", settings: "Settings", view: "View", start: datetime, end: datetime, run_id: str
) -> ledger.Entry | None:
    """Recompute the windows that start in ``[start, end)`` (UTC), from the silver rows that gold already covers.

    Returns:
        The new entry, or None where there is nothing to redo: the view has no gold yet, and the next ``roll_up`` covers all of
        it; or this very code has written all of gold, and nobody else.
    """
    source_table, table = f"silver.{view.input}", gold_of(view)
    with lease(settings, table, run_id):
        done = ledger.latest(settings, table)
        if done is None or ledger.by_this_code(settings, done):
            return None
        position = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in done.ranges]
        silver = lake.read(spark, settings, source_table).where(to_where(position, "_partition", "_offset"))
        still = [Range(r.topic, r.topic_id, r.partition, r.end, r.end) for r in done.ranges]
        record = ledger.record("rollup", done, run_id, still, mixed=True, counts={})
        _replace(silver, settings, view, start.astimezone(UTC), end.astimezone(UTC), record)
        return ledger.latest(settings, table)


def _summary(rows: "DataFrame", view: "View") -> Any:
    on_time = F.expr(view.on_time)
    return rows.agg(
        F.count_if(on_time).alias("counted"),
        F.count_if(~on_time).alias("ignored"),
        F.min(F.when(on_time, F.col(view.event_time))).alias("first"),
        F.max(F.when(on_time, F.col(view.event_time))).alias("last"),
    ).collect()[0]


def _replace(
    silver: "DataFrame",
    settings: "Settings",
    view: "View",
    low: datetime | None,
    high: datetime | None,
    record: dict[str, Any],
) -> None:
    """Replace the windows that start in ``[low, high)``; with no bounds, commit the record alone."""
    table = gold_of(view)
    txn = ledger.txn(table, record)
    if low is None or high is None:
        lake.append(view.transform(silver.where("false")), settings, table, txn, record)
        return
    lake.replace(windows(silver, view, low, high), settings, table, starting_in(low, high), txn, record)


def windows(silver: "DataFrame", view: "View", low: datetime, high: datetime) -> "DataFrame":
    """The view's result over silver, for the windows that start in ``[low, high)`` (UTC). Pure."""
    rows = silver.where(view.on_time).where(
        (F.col(view.event_time) >= F.lit(low)) & (F.col(view.event_time) < F.lit(high + view.size))
    )
    return view.transform(rows).where(starting_in(low, high))


def starting_in(low: datetime, high: datetime) -> str:
    """A SQL predicate on a view's output: the windows that start in ``[low, high)`` (UTC)."""
    return f"window_start >= '{_literal(low)}' AND window_start < '{_literal(high)}'"


def _literal(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S.%f")
