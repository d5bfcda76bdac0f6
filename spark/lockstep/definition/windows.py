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


def counts_of(value: "Column", distinct: int) -> "Column":
    """An aggregate: how often each value occurs, as an array of ``item`` and ``count``, sorted by ``item``.

    With fewer than ``distinct`` different values, the counts are exact, in whatever order and parts the rows come. With more, it
    is a frequent-items sketch (Apache DataSketches): rare values are left out, and a count may be off by 2 / ``distinct`` of all
    rows. If the counts add up to the number of rows, they are exact.
    """
    return F.array_sort(F.call_function("approx_top_k", value, F.lit(distinct), F.lit(distinct)))


def ranked(rows: "DataFrame", size: timedelta, slide: timedelta, item: str, highest: int, distinct: int) -> "DataFrame":
    """The ``highest`` most frequent values of a column in each window; of equally frequent ones the lower value comes first.

    Returns:
        ``window_start``, ``window_end``, ``rank`` (from 1), the item, ``views`` (its count), and whether the window's counts
        are ``exact``: they are while it has fewer than ``distinct`` values.
    """
    counted = per_window(
        rows, size, slide, [], F.count("*").alias("all"), counts_of(F.col(item), distinct).alias("counts")
    )
    total = F.aggregate("counts", F.lit(0).cast("bigint"), lambda sum_, value: sum_ + value["count"])
    order = F.transform("counts", lambda value: F.struct((-value["count"]).alias("views"), value["item"].alias("item")))
    first = counted.select(
        "window_start",
        "window_end",
        F.posexplode(F.slice(F.array_sort(order), 1, highest)).alias("index", "of"),
        (total == F.col("all")).alias("exact"),
    )
    return first.select(
        "window_start",
        "window_end",
        (F.col("index") + 1).alias("rank"),
        F.col("of.item").alias(item),
        (-F.col("of.views")).alias("views"),
        "exact",
    )


def _text(length: timedelta) -> str:
    return f"{length // MICROSECOND} microseconds"
