"""Building blocks of windowed views: rows into windows, and exact counts of values inside one aggregation. Pure.

A live view can aggregate only once, and cannot rank rows. What needs a second step, such as :func:`ranked`, works on an array
that the one aggregation gives: :func:`counts_of`.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.view import MICROSECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


def per_window(
    rows: "DataFrame",
    size: timedelta,
    slide: timedelta,
    by: "Sequence[str]",
    *measures: "Column",
    time: str = "event_time",
) -> "DataFrame":
    """One row for each window that holds a row, and each value of the columns ``by``.

    Windows are ``[start, start + size)``, start every ``slide`` and are aligned to the epoch. A slide shorter than the size
    makes them overlap; a longer one leaves gaps, whose rows are in no window.

    Returns:
        ``window_start``, ``window_end`` (TIMESTAMP, UTC), the columns ``by`` and the measures.
    """
    if slide > size:
        # Spark's window has no gaps: take a window of the whole slide, and only the rows of its first part.
        since_start = F.pmod(F.unix_micros(time), F.lit(slide // MICROSECOND))
        rows = rows.where(since_start < size // MICROSECOND)
    window = F.window(time, _text(max(size, slide)), _text(slide))
    start = F.col("window.start")
    end = start + F.make_dt_interval(secs=F.lit(size.total_seconds()))
    counted = rows.groupBy(window, *by).agg(*measures)
    others = [name for name in counted.columns if name != "window"]
    return counted.select(start.alias("window_start"), end.alias("window_end"), *others)


# A sketch's hash table has a power of two as its size, and is filled to three quarters. So for ``distinct`` values it has
# ``distinct`` / 0.75 places or more, and its error is 3.5 / places of all rows (DataSketches' "a priori error"), or less.
_ERROR = 3.5 * 0.75


def counts_of(value: "Column", distinct: int) -> "Column":
    """An aggregate: how often each value occurs, as an array of ``item`` and ``count``, sorted by ``item``.

    With fewer than ``distinct`` different values, the counts are exact, in whatever order and parts the rows come. With more, it
    is a frequent-items sketch (Apache DataSketches): rare values are left out, and a count may be too high by
    2.625 / ``distinct`` of all rows. If the counts add up to the number of rows, they are exact.
    """
    return F.array_sort(F.call_function("approx_top_k", value, F.lit(distinct), F.lit(distinct)))


def ranked(rows: "DataFrame", size: timedelta, slide: timedelta, item: str, highest: int, distinct: int) -> "DataFrame":
    """The ``highest`` most frequent values of a column in each window; of equally frequent ones the lower value comes first.

    Returns:
        ``window_start``, ``window_end``, ``rank`` (from 1), the item, ``views`` (its count), and whether the window's counts
        are ``exact``: they are while it has fewer than ``distinct`` values. ``views_error`` is by how much ``views`` may be too
        high, and ``rank_error`` how many other items, of the highest and the one below them, may have this rank instead. Both
        are 0 if the counts are exact.
    """
    counted = per_window(
        rows, size, slide, [], F.count("*").alias("all"), counts_of(F.col(item), distinct).alias("counts")
    )
    total = F.aggregate("counts", F.lit(0).cast("bigint"), lambda sum_, value: sum_ + value["count"])
    order = F.transform("counts", lambda value: F.struct((-value["count"]).alias("views"), value["item"].alias("item")))
    error = F.when(F.col("exact"), 0).otherwise((F.col("all") * _ERROR / distinct).cast("bigint"))
    first = (
        counted.withColumn("exact", total == F.col("all"))
        .select(
            "window_start",
            "window_end",
            F.slice(F.array_sort(order), 1, highest + 1).alias("highest"),
            "exact",
            error.cast("bigint").alias("views_error"),
        )
        .select("*", F.posexplode(F.slice("highest", 1, highest)).alias("index", "of"))
    )
    return first.select(
        "window_start",
        "window_end",
        (F.col("index") + 1).alias("rank"),
        F.col("of.item").alias(item),
        (-F.col("of.views")).alias("views"),
        "exact",
        "views_error",
        F.when(F.col("exact"), 0).otherwise(_rank_error()).alias("rank_error"),
    )


def _rank_error() -> "Column":
    """How many others may have the rank of ``of``: each count may be too high, so two that are closer than twice that may swap.

    The highest count that the sketch leaves out is below twice its error.
    """
    close = 2 * F.col("views_error")
    near = F.filter("highest", lambda other: F.abs(other["views"] - F.col("of.views")) <= close)
    left_out = F.when(-F.col("of.views") <= 2 * close, 1).otherwise(0)
    return F.size(near) - 1 + left_out


def _text(length: timedelta) -> str:
    return f"{length // MICROSECOND} microseconds"
