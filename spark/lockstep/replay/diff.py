"""The diff: what a promotion would change, by view and window, and by stream and hour of arrival."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.ledger.ops_table import OpsTable
from lockstep.reconcile.compare import by_window, differences, rows_of
from lockstep.replay.plan import Plan
from lockstep.replay.stages import KeyCounts, Shadowed, TableDiff

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from lockstep.settings import Settings

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
TABLE = OpsTable("ops.replay_windows", COLUMNS, "replay")
# As many windows as fit on a page beside the table of the diff; ops.replay_windows has all.
SAMPLES = 5
SIDES = ("new", "old")
KINDS = ("equal", "changed", "added", "removed")


def diff(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, shadowed: Shadowed
) -> dict[str, TableDiff]:
    """Compare every shadow with the rows that it would replace, by table. Every window is a row of ``ops.replay_windows``."""
    by_table = dict(_windows(spark, settings, plan, replay, shadowed))
    if not by_table:
        return {}
    windows = reduce(lambda one, other: one.unionByName(other), by_table.values())
    windows = windows.withColumn("replay", F.lit(replay)).select(*COLUMNS).persist()
    try:
        _write(spark, settings, windows, replay)
        totals = {row["table"]: row for row in _totals(windows).collect()}
        return {table: _table_diff(totals[table], windows) if table in totals else TableDiff() for table in by_table}
    finally:
        windows.unpersist()


def changed_windows(tables: Mapping[str, TableDiff]) -> tuple[int, int]:
    """How many windows of the views differ, and how many there are. Without views, those of silver count."""
    gold = [table for name, table in tables.items() if name.startswith("gold.")] or list(tables.values())
    return sum(t.windows - t.equal for t in gold), sum(t.windows for t in gold)


def _windows(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, shadowed: Shadowed
) -> "Iterator[tuple[str, DataFrame]]":
    """By table, one row a window."""
    for part in plan.parts:
        if plan.silver_part(part.stream):
            table = Tables.of(CONTRACTS[part.stream]).log
            old = lake.read(spark, settings, table).where(part.where)
            new = lake.read(spark, settings, shadow_of(table, replay))
            yield table, _with_verdict(_by_hour(new, old), table)
    for target in plan.targets:
        view, shadow = VIEWS[target.view], shadowed.gold[target.view]
        if shadow.span is not None:
            table = gold_of(view)
            old = lake.read(spark, settings, table, shadow.version).where(view.interval(*shadow.span))
            new = lake.read(spark, settings, shadow_of(table, replay))
            yield table, _with_verdict(by_window(new, old, view, SIDES), table)


def _by_hour(new: "DataFrame", old: "DataFrame") -> "DataFrame":
    """Compare rows of silver that have the same offset, by hour of arrival."""
    keys = ["_partition", "_offset"]
    values = [c for c in old.columns if c not in keys]
    left, right = (rows_of(df, keys, values, F.date_trunc("hour", "_arrival")) for df in (new, old))
    end = F.col("window_start") + F.expr("INTERVAL 1 HOUR")
    return differences(left, right, keys, SIDES).withColumn("window_end", end)


def _with_verdict(windows: "DataFrame", table: str) -> "DataFrame":
    verdict = (
        F.when(F.col("keys") == F.col("equal"), "equal")
        .when(F.col("keys") == F.col("only_new"), "added")
        .when(F.col("keys") == F.col("only_old"), "removed")
        .otherwise("changed")
    )
    named = windows.withColumns({"verdict": verdict, "table": F.lit(table)})
    return named.withColumnsRenamed({"only_new": "added", "only_old": "removed"})


def _write(spark: "SparkSession", settings: "Settings", windows: "DataFrame", replay: str) -> None:
    with TABLE.writing(spark, settings, replay) as commit:
        if commit.newest(replay):
            # The shadow was computed again, or the stage died before its record was written.
            commit.replace(windows, f"replay = '{replay}'", {}, replay)
        else:
            commit.append(windows, {}, replay)


def _totals(windows: "DataFrame") -> "DataFrame":
    by_kind = (F.count_if(F.col("verdict") == kind).alias(f"windows_{kind}") for kind in KINDS)
    return windows.groupBy("table").agg(*by_kind, *(F.sum(kind).alias(kind) for kind in KINDS))


def _table_diff(total: "Row", windows: "DataFrame") -> TableDiff:
    by_kind = {kind: total[f"windows_{kind}"] for kind in KINDS}
    count = sum(by_kind.values())
    samples = _samples(windows, total["table"]) if by_kind["equal"] < count else ()
    return TableDiff(windows=count, **by_kind, keys=KeyCounts(**{kind: total[kind] for kind in KINDS}), samples=samples)


def _samples(windows: "DataFrame", table: str) -> tuple[str, ...]:
    differing = windows.where((F.col("table") == table) & (F.col("verdict") != "equal"))
    first = differing.orderBy("window_start").limit(SAMPLES).collect()
    return tuple(f"{r['window_start']:%F %T}: {r['verdict']}, such as {r['sample']}" for r in first)
