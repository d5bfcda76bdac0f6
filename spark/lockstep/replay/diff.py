"""The diff: what a promotion would change, per view and window, and per stream and hour of arrival."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.batch.compute import interval
from lockstep.batch.rollup import gold_of
from lockstep.contracts import CONTRACTS
from lockstep.control import lease
from lockstep.ingest import ledger
from lockstep.reconcile.compare import by_window, differences, rows_of
from lockstep.refine.tables import Tables
from lockstep.replay.plan import Plan
from lockstep.replay.tables import part_of, shadow_of
from lockstep.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

TABLE = "ops.replay_windows"
COLUMNS = (
    "replay STRING, table STRING, window_start TIMESTAMP, window_end TIMESTAMP, verdict STRING, keys BIGINT, equal BIGINT, "
    "changed BIGINT, added BIGINT, removed BIGINT, sample STRING"
)
SAMPLES = 5
SIDES = ("new", "old")


def diff(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, made: "Mapping[str, Any]"
) -> dict[str, dict[str, Any]]:
    """Compare every shadow with what it would replace, and keep a row for each window in ``ops.replay_windows``.

    Returns:
        By table: ``windows`` compared, how many are ``equal``, ``changed``, ``added`` and ``removed``, the ``keys`` of each kind,
        and ``samples`` of windows that differ.
    """
    if not lake.exists(settings, TABLE):
        lake.create(spark, settings, TABLE, COLUMNS)
    found = {}
    for part in plan.parts:
        if part_of(plan, part.stream):
            table = Tables.of(CONTRACTS[part.stream]).log
            old = lake.read(spark, settings, table).where(part.where)
            rows = _rows(lake.read(spark, settings, shadow_of(table, replay)), old)
            found[table] = _keep(settings, rows, table, replay)
    for target in plan.targets:
        view, shadow = VIEWS[target.view], made["gold"][target.view]
        if shadow["span"] is None:
            continue
        table = gold_of(view)
        old = lake.read(spark, settings, table, shadow["version"]).where(interval(view, *span_of(shadow)))
        windows = by_window(lake.read(spark, settings, shadow_of(table, replay)), old, view, SIDES)
        found[table] = _keep(settings, windows, table, replay)
    return found


def _rows(new: "DataFrame", old: "DataFrame") -> "DataFrame":
    """Rows of silver against each other, by the offset that they came from, hour by hour of their arrival."""
    keys = ["_partition", "_offset"]
    values = [c for c in old.columns if c not in keys]
    left, right = (rows_of(df, keys, values, F.date_trunc("hour", "_arrival")) for df in (new, old))
    end = F.col("window_start") + F.expr("INTERVAL 1 HOUR")
    return differences(left, right, keys, SIDES).withColumn("window_end", end)


def _keep(settings: "Settings", windows: "DataFrame", table: str, replay: str) -> dict[str, Any]:
    added, removed = F.col("keys") == F.col("only_new"), F.col("keys") == F.col("only_old")
    verdict = (
        F.when(F.col("keys") == F.col("equal"), "equal")
        .when(added, "added")
        .when(removed, "removed")
        .otherwise("changed")
    )
    rows = windows.select(
        F.lit(replay).alias("replay"),
        F.lit(table).alias("table"),
        "window_start",
        "window_end",
        verdict.alias("verdict"),
        "keys",
        "equal",
        "changed",
        F.col("only_new").alias("added"),
        F.col("only_old").alias("removed"),
        "sample",
    ).persist()
    try:
        with lease(settings, TABLE, replay):
            seq = next((c.record["seq"] for c in lake.commits(settings, TABLE) if "seq" in c.record), 0) + 1
            record = {"writer": "replay", "seq": seq, "diff": replay, "table": table}
            # When a shadow was made again, the rows of its last diff stand.
            where = f"replay = '{replay}' AND table = '{table}'"
            lake.replace(rows, settings, TABLE, where, ledger.txn(TABLE, record), record)
        return _summary(rows)
    finally:
        rows.unpersist()


def _summary(rows: "DataFrame") -> dict[str, Any]:
    kinds = ("equal", "changed", "added", "removed")
    found = rows.agg(
        *(F.count_if(F.col("verdict") == kind).alias(f"windows_{kind}") for kind in kinds),
        *(F.coalesce(F.sum(kind), F.lit(0)).alias(kind) for kind in kinds),
    ).collect()[0]
    counts = {kind: found[f"windows_{kind}"] for kind in kinds}
    windows = sum(counts.values())
    samples = []
    if windows > counts["equal"]:
        differing = rows.where("verdict <> 'equal'").orderBy("window_start").limit(SAMPLES).collect()
        samples = [f"{r['window_start']:%F %T}: {r['verdict']}, such as {r['sample']}" for r in differing]
    return {"windows": windows, **counts, "keys": {kind: found[kind] for kind in kinds}, "samples": samples}


def span_of(shadow: "Mapping[str, Any]") -> Any:
    """The interval of a view's shadow, as its record has it."""
    return tuple(datetime.fromisoformat(moment) for moment in shadow["span"])


def changes(found: "Mapping[str, Mapping[str, Any]]") -> tuple[int, int]:
    """How many windows of the views differ, and how many there are."""
    gold = [table for name, table in found.items() if name.startswith("gold.")] or list(found.values())
    return sum(t["windows"] - t["equal"] for t in gold), sum(t["windows"] for t in gold)
