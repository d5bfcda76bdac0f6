"""Compare the two layers key by key. Pure."""

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.views import View

RESULT = (
    "view STRING, window_start TIMESTAMP, window_end TIMESTAMP, keys BIGINT, equal BIGINT, changed BIGINT, "
    "only_live BIGINT, only_batch BIGINT, verdict STRING, sample STRING, run_id STRING, reconciled_at TIMESTAMP"
)


def compare(live: "DataFrame", batch: "DataFrame", view: "View") -> "DataFrame":
    """One row per window: how many keys agree, differ, or stand in one layer only, and one differing key as a sample.

    Values are compared null-safely and exactly. Columns: those of :data:`RESULT` up to ``sample``.
    """
    keys = list(view.key)
    values = [c for c in batch.columns if c not in keys]
    left = live.select(*keys, F.struct(*values).alias("live"))
    right = batch.select(*keys, F.struct(*values).alias("batch"))
    matches = reduce(and_, (left[k].eqNullSafe(right[k]) for k in keys))
    both = (
        left.alias("l")
        .join(right.alias("b"), matches, "full")
        .select(*(F.coalesce(left[k], right[k]).alias(k) for k in keys), "live", "batch")
    )
    verdict = (
        F.when(F.col("batch").isNull(), "only_live")
        .when(F.col("live").isNull(), "only_batch")
        .when(F.col("live").eqNullSafe(F.col("batch")), "equal")
        .otherwise("changed")
    )
    difference = F.when(
        F.col("verdict") != "equal", F.to_json(F.struct(*[k for k in keys if k != "window_start"], "live", "batch"))
    )
    counted = (
        both.withColumn("verdict", verdict)
        .groupBy("window_start")
        .agg(
            F.count("*").alias("keys"),
            *(F.count_if(F.col("verdict") == v).alias(v) for v in ("equal", "changed", "only_live", "only_batch")),
            F.min(difference).alias("sample"),
        )
    )
    end = F.col("window_start") + F.make_dt_interval(secs=F.lit(view.size.total_seconds()))
    same = F.col("keys") == F.col("equal")
    return counted.select(
        F.lit(view.name).alias("view"),
        "window_start",
        end.alias("window_end"),
        "keys",
        "equal",
        "changed",
        "only_live",
        "only_batch",
        F.when(same, "equal").otherwise("unexplained").alias("verdict"),
        "sample",
    )
