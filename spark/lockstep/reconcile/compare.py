"""Compare two tables of a view key by key: the two layers, or a table and what a replay would make of it. Pure."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition import View
from lockstep.reconcile.difference import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LAYERS = ("live", "batch")


def by_window(left: "DataFrame", right: "DataFrame", view: View, sides: tuple[str, str] = LAYERS) -> "DataFrame":
    """Compare two tables of a view, with one row per window (for a keyed view: per minute).

    Returns:
        The columns of :func:`differences`, and ``window_end``.
    """
    return _with_end(counted(by_key(left, right, view, sides), sides), view)


def by_key(left: "DataFrame", right: "DataFrame", view: View, sides: tuple[str, str] = LAYERS) -> "DataFrame":
    """Compare two tables of a view, with one row per key: see :func:`matched`."""
    keys = list(view.key)
    values = values_of(view, right.columns)
    left_rows, right_rows = (rows_of(rows, keys, values, window_of(view)) for rows in (left, right))
    return matched(left_rows, right_rows, keys, sides)


def values_of(view: View, columns: Iterable[str]) -> list[str]:
    """Those columns of the view's table that must be the same on both sides, besides the key."""
    return [c for c in columns if c not in (*view.key, *_not_compared(view))]


def rows_of(rows: "DataFrame", keys: list[str], values: list[str], window: "Column") -> "DataFrame":
    """Rows in the columns that :func:`matched` takes: the key, the start of the window as ``_window``, and ``_row``."""
    return rows.select(*keys, window.alias("_window"), F.struct(*values).alias("_row"))


def matched(left: "DataFrame", right: "DataFrame", keys: list[str], sides: tuple[str, str]) -> "DataFrame":
    """One row per key: the key, ``_window``, the row of each side under its name (null: it has none), and the ``kind``.

    The kind is ``equal``, ``changed``, ``only_<side>``, or ``doubled`` if a side has the key more than once. Values are
    compared null-safely and exactly. If the sides have a key in two windows, it counts in the window of ``right``.
    """
    left_name, right_name = sides
    is_left = F.col("_left")
    both = left.withColumn("_left", F.lit(True)).unionAll(right.withColumn("_left", F.lit(False)))
    pairs = both.groupBy(*keys).agg(
        F.count_if(is_left).alias("_lefts"),
        F.count_if(~is_left).alias("_rights"),
        F.first(F.when(is_left, F.col("_row")), ignorenulls=True).alias(left_name),
        F.first(F.when(~is_left, F.col("_row")), ignorenulls=True).alias(right_name),
        F.coalesce(F.max(F.when(~is_left, F.col("_window"))), F.max("_window")).alias("_window"),
    )
    kind = (
        F.when((F.col("_lefts") > 1) | (F.col("_rights") > 1), Kind.DOUBLED.value)
        .when(F.col("_rights") == 0, _only(left_name))
        .when(F.col("_lefts") == 0, _only(right_name))
        .when(F.col(left_name).eqNullSafe(F.col(right_name)), Kind.EQUAL.value)
        .otherwise(Kind.CHANGED.value)
    )
    return pairs.select(*keys, "_window", left_name, right_name, kind.alias("kind"))


def differences(left: "DataFrame", right: "DataFrame", keys: list[str], sides: tuple[str, str]) -> "DataFrame":
    """One row per window: ``window_start``, ``keys``, how many keys are of each kind, and a ``sample`` of a difference.

    The kinds are columns: ``equal``, ``changed``, ``doubled``, and ``only_<side>`` for each side.
    """
    return counted(matched(left, right, keys, sides), sides)


def counted(pairs: "DataFrame", sides: tuple[str, str]) -> "DataFrame":
    """Count the rows of :func:`matched` per window: the columns of :func:`differences`."""
    key_columns = [c for c in pairs.columns if c not in ("window_start", "_window", "kind", *sides)]
    difference = F.when(F.col("kind") != Kind.EQUAL.value, F.to_json(F.struct(*key_columns, *sides)))
    kinds = (Kind.EQUAL.value, Kind.CHANGED.value, Kind.DOUBLED.value, *map(_only, sides))
    return pairs.groupBy(F.col("_window").alias("window_start")).agg(
        F.count("*").alias("keys"),
        *(F.count_if(F.col("kind") == kind).alias(kind) for kind in kinds),
        F.min(difference).alias("sample"),
    )


def _only(side: str) -> str:
    """The kind of a key that only this side has: of the layers, ``Kind.ONLY_LIVE`` and ``Kind.ONLY_BATCH``."""
    return f"only_{side}"


def _with_end(windows: "DataFrame", view: View) -> "DataFrame":
    _, length = view.comparison_window
    return windows.withColumn(
        "window_end", F.col("window_start") + F.make_dt_interval(secs=F.lit(length.total_seconds()))
    )


def window_of(view: View) -> "Column":
    """The start of the window in which a row is compared: its own window, or for a keyed view the minute of its instant."""
    return F.expr(view.comparison_window[0])


def _not_compared(view: View) -> tuple[str, ...]:
    """The columns that may differ: the order in which changes reach an upserted row depends on how its streams interleave."""
    return ("at",) if view.upserts else ()
