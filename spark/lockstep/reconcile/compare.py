"""Compare the two layers key by key. Pure."""

from datetime import timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition import Keyed, View, Windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MINUTE = timedelta(minutes=1)
RESULT = (
    "view STRING, window_start TIMESTAMP, window_end TIMESTAMP, keys BIGINT, equal BIGINT, changed BIGINT, "
    "only_live BIGINT, only_batch BIGINT, verdict STRING, sample STRING, run_id STRING, reconciled_at TIMESTAMP"
)


def compare(live: "DataFrame", batch: "DataFrame", view: View) -> "DataFrame":
    """One row per window (of a keyed view: per minute): how many keys agree, differ, or stand in one layer only.

    One differing key comes along as a sample.

    Values are compared null-safely and exactly. Columns: those of :data:`RESULT` up to ``sample``.
    """
    keys = list(view.key)
    values = [c for c in batch.columns if c not in (*keys, *_beside(view))]
    left = live.select(*keys, _window(view).alias("live_window"), F.struct(*values).alias("live"))
    right = batch.select(*keys, _window(view).alias("batch_window"), F.struct(*values).alias("batch"))
    matches = reduce(and_, (left[k].eqNullSafe(right[k]) for k in keys))
    both = left.join(right, matches, "full").select(
        *(F.coalesce(left[k], right[k]).alias(k) for k in keys if k != "window_start"),
        F.coalesce("batch_window", "live_window").alias("window_start"),
        "live",
        "batch",
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
    length = view.size if isinstance(view, Windowed) else MINUTE
    end = F.col("window_start") + F.make_dt_interval(secs=F.lit(length.total_seconds()))
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


def _window(view: View) -> "Column":
    return F.col("window_start") if isinstance(view, Windowed) else F.date_trunc("minute", "at")


def _beside(view: View) -> tuple[str, ...]:
    """Columns that may differ: which change came last to an upserted row depends on how the streams interleaved."""
    return ("at",) if isinstance(view, Keyed) and view.upserts else ()
