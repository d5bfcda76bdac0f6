"""The rows of a stream in the windows of views, in one aggregation: of all views of a live job, and of one view in batch. Pure.

Each stateful operator of a live query costs the same, whatever it has to do. So the views of a job have one.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.panes import panes
from lockstep.definition.view import MICROSECOND, Grouping
from lockstep.definition.windowed import Windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def transform(view: Windowed, rows: "DataFrame") -> "DataFrame":
    """The rows of one view, in its columns, over good rows of its input of which each comes once."""
    if two_steps := panes(view):
        of_rows, of_panes = two_steps
        return in_one_step(of_panes, in_one_step(of_rows, rows))
    return in_one_step(view, rows)


def in_one_step(view: Windowed, rows: "DataFrame") -> "DataFrame":
    """The same, where each row is counted in each of its windows, as live does it."""
    found = in_windows(rows, {view.name: view}, {view.name: view.grouping})
    return found.select(F.inline(view.name))


def in_windows(
    rows: "DataFrame",
    views: Mapping[str, Windowed],
    groupings: Mapping[str, Grouping],
    kept: timedelta | None = None,
) -> "DataFrame":
    """The windows of several views, and of each the view's rows.

    Args:
        rows: good rows of the input of all these views, of which each comes once. Those count that are on time.
        views: by label.
        groupings: what the state has, by label, in its order: of all views, and of such as have left.
        kept: how long a stream keeps a window's state after its end.

    Returns:
        A row for each window and each value of its view's ``by``: ``_view``, the label, and for each view a column of the name of
        its label, with an array of the view's rows. It is null in the windows of other views.
    """
    places = F.array(*(_place(label, view, groupings) for label, view in views.items()))
    placed = rows.withColumn("_in", F.explode(places)).where("_in IS NOT NULL")
    starts = F.sequence("_in.first", "_in.last", "_in.slide")
    placed = placed.withColumn("_at", F.explode(starts)).withColumn("_until", F.col("_at") + F.col("_in.size"))
    # A window that ends before the row: the slide does not divide the size, or leaves gaps.
    placed = placed.where("_until > _in.time")
    # Spark drops a window's state when the watermark has passed the column with this entry. It gives it to event times, and to
    # what `window` makes of them; but that makes windows of one size.
    watermark = {"spark.watermarkDelayMs": kept // timedelta(milliseconds=1)} if kept else {}
    # Columns, and not expressions: the state has their names.
    keys = [f"_by_{label}" for label in groupings]
    placed = placed.select(
        "*",
        F.col("_in.view").alias("_view"),
        F.timestamp_micros("_at").alias("_start"),
        F.timestamp_micros("_until").alias("_end", metadata=watermark),
        *(F.col(f"_in.{key}").alias(key) for key in keys),
    )
    windows = placed.groupBy("_view", "_start", "_end", *keys).agg(*_measures(groupings))
    rows_of = {label: _rows(label, groupings[label], view) for label, view in views.items()}
    return windows.select("_view", *(F.when(F.col("_view") == v, found).alias(v) for v, found in rows_of.items()))


def _place(label: str, view: Windowed, groupings: Mapping[str, Grouping]) -> "Column":
    """The starts of the first and the last window that may hold a row, in microseconds; null if the view does not count it."""
    size, slide = view.size // MICROSECOND, view.slide // MICROSECOND
    time = F.unix_micros(view.event_time)
    last = time - F.pmod(time, F.lit(slide))
    place = F.struct(
        F.lit(label).alias("view"),
        time.alias("time"),
        (last - (-(-size // slide) - 1) * slide).alias("first"),
        last.alias("last"),
        F.lit(slide).cast("bigint").alias("slide"),
        F.lit(size).cast("bigint").alias("size"),
        # Null for the other views, but of the same type for all.
        *(F.when(F.lit(of == label), _key(grouping)).alias(f"_by_{of}") for of, grouping in groupings.items()),
    )
    return F.when(F.expr(f"({view.on_time}) AND ({view.where})"), place)


def _key(grouping: Grouping) -> "Column":
    named = [F.expr(expression).alias(name) for name, expression in grouping.by.items()]
    return F.struct(*named) if named else F.lit(True)


def _measures(groupings: Mapping[str, Grouping]) -> "list[Column]":
    return [
        F.expr(measure).alias(f"{label}.{name}")
        for label, grouping in groupings.items()
        for name, measure in grouping.measures.items()
    ]


def _rows(label: str, grouping: Grouping, view: Windowed) -> "Column":
    """The view's rows of one window."""
    size = F.make_dt_interval(secs=F.lit(view.size.total_seconds()))
    row = F.struct(
        F.col("_start").alias("window_start"),
        (F.col("_start") + size).alias("window_end"),
        *(F.col(f"_by_{label}.{name}").alias(name) for name in grouping.by),
        *(F.col(f"`{label}.{name}`").alias(name) for name in grouping.measures),
    )
    return view.result(row) if view.result else F.array(row)
