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
    counted = by_window(live, batch, view, ("live", "batch"))
    same = F.col("keys") == F.col("equal")
    return counted.select(
        F.lit(view.name).alias("view"),
        "window_start",
        "window_end",
        "keys",
        "equal",
        "changed",
        "only_live",
        "only_batch",
        F.when(same, "equal").otherwise("unexplained").alias("verdict"),
        "sample",
    )


def by_window(left: "DataFrame", right: "DataFrame", view: View, sides: tuple[str, str]) -> "DataFrame":
    """Two tables of a view against each other: see :func:`differences`, with ``window_end``."""
    keys = list(view.key)
    values = [c for c in right.columns if c not in (*keys, *_beside(view))]
    one, other = (rows_of(rows, keys, values, _window(view)) for rows in (left, right))
    length = view.size if isinstance(view, Windowed) else MINUTE
    end = F.col("window_start") + F.make_dt_interval(secs=F.lit(length.total_seconds()))
    return differences(one, other, keys, sides).withColumn("window_end", end)


def rows_of(rows: "DataFrame", keys: list[str], values: list[str], window: "Column") -> "DataFrame":
    """Rows as :func:`differences` takes them: the key, the start of their window as ``_window``, and ``_row``."""
    return rows.select(*keys, window.alias("_window"), F.struct(*values).alias("_row"))


def differences(left: "DataFrame", right: "DataFrame", keys: list[str], sides: tuple[str, str]) -> "DataFrame":
    """One row per window: ``window_start``, ``keys``, ``equal``, ``changed``, ``only_<side>`` of either side, and a ``sample``.

    A key that stands in two windows counts in that of ``right``. Values are compared null-safely and exactly.
    """
    one, other = sides
    renamed = ({"_row": name, "_window": f"_{name}"} for name in sides)
    named = [rows.withColumnsRenamed(names) for rows, names in zip((left, right), renamed, strict=True)]
    matches = reduce(and_, (named[0][k].eqNullSafe(named[1][k]) for k in keys))
    shown = [k for k in keys if k != "window_start"]
    both = (
        named[0]
        .join(named[1], matches, "full")
        .select(
            *(F.coalesce(named[0][k], named[1][k]).alias(k) for k in shown),
            F.coalesce(f"_{other}", f"_{one}").alias("window_start"),
            one,
            other,
        )
    )
    verdict = (
        F.when(F.col(other).isNull(), f"only_{one}")
        .when(F.col(one).isNull(), f"only_{other}")
        .when(F.col(one).eqNullSafe(F.col(other)), "equal")
        .otherwise("changed")
    )
    difference = F.when(F.col("verdict") != "equal", F.to_json(F.struct(*shown, one, other)))
    verdicts = ("equal", "changed", f"only_{one}", f"only_{other}")
    return (
        both.withColumn("verdict", verdict)
        .groupBy("window_start")
        .agg(
            F.count("*").alias("keys"),
            *(F.count_if(F.col("verdict") == v).alias(v) for v in verdicts),
            F.min(difference).alias("sample"),
        )
    )


def _window(view: View) -> "Column":
    """The window that a row of the view is shown in: its own, or of a keyed view the minute of its instant."""
    return F.col("window_start") if isinstance(view, Windowed) else F.date_trunc("minute", "at")


def _beside(view: View) -> tuple[str, ...]:
    """Columns that may differ: which change came last to an upserted row depends on how the streams interleaved."""
    return ("at",) if isinstance(view, Keyed) and view.upserts else ()
