"""The diff: what a promotion would change, per view and window, and per stream and hour of arrival."""

from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.reconcile.compare import by_window, differences, rows_of
from lockstep.replay.plan import Plan
from lockstep.replay.tables import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

    from lockstep.settings import Settings

TABLE = "ops.replay_windows"
COLUMNS = {
    "replay": "STRING",
    "table": "STRING",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "verdict": "STRING",
    "keys": "BIGINT",
    "equal": "BIGINT",
    "changed": "BIGINT",
    "added": "BIGINT",
    "removed": "BIGINT",
    "sample": "STRING",
}
SAMPLES = 5
SIDES = ("new", "old")
KINDS = ("equal", "changed", "added", "removed")


def diff(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, made: "Mapping[str, Any]"
) -> dict[str, dict[str, Any]]:
    """Compare every shadow with what it would replace, and keep a row for each window in ``ops.replay_windows``.

    Returns:
        By table: ``windows`` compared, how many are ``equal``, ``changed``, ``added`` and ``removed``, the ``keys`` of each kind,
        and ``samples`` of windows that differ.
    """
    compared = dict(_compared(spark, settings, plan, replay, made))
    if not compared:
        return {}
    rows = reduce(lambda one, other: one.unionByName(other), compared.values())
    rows = rows.withColumn("replay", F.lit(replay)).select(*COLUMNS).persist()
    try:
        _keep(spark, settings, rows, replay)
        found = {row["table"]: row for row in _counted(rows).collect()}
        return {table: _told(found.get(table), _samples(rows, table, found.get(table))) for table in compared}
    finally:
        rows.unpersist()


def _compared(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, made: "Mapping[str, Any]"
) -> "Iterator[tuple[str, DataFrame]]":
    """By table, a row for each window."""
    for part in plan.parts:
        if part_of(plan, part.stream):
            table = Tables.of(CONTRACTS[part.stream]).log
            old = lake.read(spark, settings, table).where(part.where)
            yield table, _judged(_rows(lake.read(spark, settings, shadow_of(table, replay)), old), table)
    for target in plan.targets:
        view, shadow = VIEWS[target.view], made["gold"][target.view]
        if shadow["span"] is not None:
            table = gold_of(view)
            old = lake.read(spark, settings, table, shadow["version"]).where(view.interval(*span_of(shadow)))
            new = lake.read(spark, settings, shadow_of(table, replay))
            yield table, _judged(by_window(new, old, view, SIDES), table)


def _rows(new: "DataFrame", old: "DataFrame") -> "DataFrame":
    """Rows of silver against each other, by the offset that they came from, hour by hour of their arrival."""
    keys = ["_partition", "_offset"]
    values = [c for c in old.columns if c not in keys]
    left, right = (rows_of(df, keys, values, F.date_trunc("hour", "_arrival")) for df in (new, old))
    end = F.col("window_start") + F.expr("INTERVAL 1 HOUR")
    return differences(left, right, keys, SIDES).withColumn("window_end", end)


def _judged(windows: "DataFrame", table: str) -> "DataFrame":
    verdict = (
        F.when(F.col("keys") == F.col("equal"), "equal")
        .when(F.col("keys") == F.col("only_new"), "added")
        .when(F.col("keys") == F.col("only_old"), "removed")
        .otherwise("changed")
    )
    judged = windows.withColumns({"verdict": verdict, "table": F.lit(table)})
    return judged.withColumnsRenamed({"only_new": "added", "only_old": "removed"})


def _keep(spark: "SparkSession", settings: "Settings", rows: "DataFrame", replay: str) -> None:
    if not lake.exists(settings, TABLE):
        lake.create(spark, settings, TABLE, COLUMNS)
    with lease(settings, TABLE, replay):
        earlier = [c.record for c in lake.commits(settings, TABLE) if "diff" in c.record]
        record = {"writer": "replay", "seq": earlier[0]["seq"] + 1 if earlier else 1, "diff": replay}
        txn = ledger.txn(TABLE, record)
        if any(one["diff"] == replay for one in earlier):
            # Its shadow was made again, or it died before it could say so: the rows of the last time stand.
            lake.replace(rows, settings, TABLE, f"replay = '{replay}'", txn, record)
        else:
            lake.append(rows, settings, TABLE, txn, record)


def _counted(rows: "DataFrame") -> "DataFrame":
    windows = (F.count_if(F.col("verdict") == kind).alias(f"windows_{kind}") for kind in KINDS)
    return rows.groupBy("table").agg(*windows, *(F.sum(kind).alias(kind) for kind in KINDS))


def _samples(rows: "DataFrame", table: str, found: "Row | None") -> list[str]:
    if found is None or not sum(found[f"windows_{kind}"] for kind in KINDS[1:]):
        return []
    differing = rows.where((F.col("table") == table) & (F.col("verdict") != "equal"))
    first = differing.orderBy("window_start").limit(SAMPLES).collect()
    return [f"{r['window_start']:%F %T}: {r['verdict']}, such as {r['sample']}" for r in first]


def _told(found: "Row | None", samples: list[str]) -> dict[str, Any]:
    windows = {kind: found[f"windows_{kind}"] if found else 0 for kind in KINDS}
    keys = {kind: found[kind] if found else 0 for kind in KINDS}
    return {"windows": sum(windows.values()), **windows, "keys": keys, "samples": samples}


def span_of(shadow: "Mapping[str, Any]") -> Any:
    """The interval of a view's shadow, as its record has it."""
    return tuple(datetime.fromisoformat(moment) for moment in shadow["span"])


def changes(found: "Mapping[str, Mapping[str, Any]]") -> tuple[int, int]:
    """How many windows of the views differ, and how many there are."""
    gold = [table for name, table in found.items() if name.startswith("gold.")] or list(found.values())
    return sum(t["windows"] - t["equal"] for t in gold), sum(t["windows"] for t in gold)
