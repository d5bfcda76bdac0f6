"""Building blocks of windowed views: exact counts of values inside one aggregation, and what is made of them.

A live view can aggregate only once, and cannot rank rows. What needs a second step, such as :func:`ranking`, works on an array
that the one aggregation gives: :func:`counts_of`.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.mergeable import Mergeable, mergeable

if TYPE_CHECKING:
    from pyspark.sql import Column

    Result = Callable[[Column], Column]


# A sketch's hash table has a power of two as its size, and is filled to three quarters. So for ``distinct`` values it has
# ``distinct`` / 0.75 places or more, and its error is 3.5 / places of all rows (DataSketches' "a priori error"), or less.
_ERROR = 3.5 * 0.75

# How many rows there are.
COUNT = mergeable("count(*)", "sum({})")


def counts_of(value: str, distinct: int) -> Mergeable:
    """An aggregate (SQL): how often each value occurs, as an array of ``item`` and ``count``, sorted by ``item``.

    With fewer than ``distinct`` different values, the counts are exact, in whatever order and parts the rows come. With more, it
    is a frequent-items sketch (Apache DataSketches): rare values are left out, and a count may be too high by
    2.625 / ``distinct`` of all rows. If the counts add up to the number of rows, they are exact.

    Args:
        value: SQL.
    """
    return Mergeable(
        f"sort_array(approx_top_k({value}, {distinct}, {distinct}))",
        ((f"approx_top_k_accumulate({value}, {distinct})", f"approx_top_k_combine({{}}, {distinct})"),),
        f"sort_array(approx_top_k_estimate({{0}}, {distinct}))",
    )


def ranking(item: str, highest: int, distinct: int) -> "Result":
    """The ``highest`` most frequent values of a window; of equally frequent ones the lower value comes first.

    The window has ``all``, the number of its rows, and ``counts``, the :func:`counts_of` a value with the same ``distinct``.

    Args:
        item: the name that the value gets.

    Returns:
        What gives rows of ``window_start``, ``window_end``, ``rank`` (from 1), the item, ``views`` (its count), and whether the
        window's counts are ``exact``: they are while it has fewer than ``distinct`` values. ``views_error`` is by how much
        ``views`` may be too high, and ``rank_error`` how many other items, of the highest and the one below them, may have this
        rank instead. Both are 0 if the counts are exact.
    """
    return partial(_ranked, item=item, highest=highest, distinct=distinct)


def _ranked(row: "Column", item: str, highest: int, distinct: int) -> "Column":
    total = F.aggregate(row["counts"], F.lit(0).cast("bigint"), lambda sum_, value: sum_ + value["count"])
    order = F.transform(
        row["counts"], lambda value: F.struct((-value["count"]).alias("views"), value["item"].alias("item"))
    )
    exact = total == row["all"]
    error = F.when(exact, 0).otherwise((row["all"] * _ERROR / distinct).cast("bigint"))
    window = F.struct(
        F.slice(F.sort_array(order), 1, highest + 1).alias("highest"),
        exact.alias("exact"),
        error.cast("bigint").alias("views_error"),
    )
    return with_value(window, lambda found: _ranks(row, found, item, highest))


def _ranks(row: "Column", window: "Column", item: str, highest: int) -> "Column":
    return F.transform(
        F.slice(window["highest"], 1, highest),
        lambda of, index: F.struct(
            row["window_start"].alias("window_start"),
            row["window_end"].alias("window_end"),
            (index + 1).alias("rank"),
            of["item"].alias(item),
            (-of["views"]).alias("views"),
            window["exact"].alias("exact"),
            window["views_error"].alias("views_error"),
            F.when(window["exact"], 0).otherwise(_rank_error(window, of)).alias("rank_error"),
        ),
    )


def _rank_error(window: "Column", of: "Column") -> "Column":
    """How many others may have the rank of ``of``: each count may be too high, so two that are closer than twice that may swap.

    The highest count that the sketch leaves out is below twice its error.
    """
    close = 2 * window["views_error"]
    near = F.filter(window["highest"], lambda other: F.abs(other["views"] - of["views"]) <= close)
    left_out = F.when(-of["views"] <= 2 * close, 1).otherwise(0)
    return F.size(near) - 1 + left_out


def with_value(value: "Column", use: "Callable[[Column], Column]") -> "Column":
    """What ``use`` makes of a value that it uses several times, and that is computed once."""
    return F.get(F.transform(F.array(value), use), F.lit(0))
