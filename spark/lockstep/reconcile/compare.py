"""Compare two tables of a view key by key: the two layers, or what is and what would be. Pure."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


LAYERS = ("live", "batch")
RESULT = {
    "view": "STRING",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "keys": "BIGINT",
    "equal": "BIGINT",
    "changed": "BIGINT",
    "only_live": "BIGINT",
    "only_batch": "BIGINT",
    "verdict": "STRING",
    "sample": "STRING",
    "run_id": "STRING",
    "reconciled_at": "TIMESTAMP",
    "doubled": "BIGINT",
    "causes": "STRING",
}


def by_window(left: "DataFrame", right: "DataFrame", view: View, sides: tuple[str, str]) -> "DataFrame":
    """Two tables of a view against each other: see :func:`differences`, with ``window_end``."""
    return _with_end(counted(by_key(left, right, view, sides), sides), view)


def by_key(left: "DataFrame", right: "DataFrame", view: View, sides: tuple[str, str] = LAYERS) -> "DataFrame":
    """Two tables of a view against each other: see :func:`matched`."""
    keys = list(view.key)
    values = values_of(view, right)
    one, other = (rows_of(rows, keys, values, window_of(view)) for rows in (left, right))
    return matched(one, other, keys, sides)


def values_of(view: View, rows: "DataFrame") -> list[str]:
    """The columns of the view's table that must be the same on both sides, beside the key."""
    return [c for c in rows.columns if c not in (*view.key, *_beside(view))]


def rows_of(rows: "DataFrame", keys: list[str], values: list[str], window: "Column") -> "DataFrame":
    """Rows as :func:`matched` takes them: the key, the start of their window as ``_window``, and ``_row``."""
    return rows.select(*keys, window.alias("_window"), F.struct(*values).alias("_row"))


def matched(left: "DataFrame", right: "DataFrame", keys: list[str], sides: tuple[str, str]) -> "DataFrame":
    """One row per key: the key, ``_window``, each side's row under its name (null: none), and a ``verdict``.

    The verdict is ``equal``, ``changed``, ``only_<side>``, or ``doubled`` where a side has the key more than once. Values are
    compared null-safely and exactly. A key that stands in two windows counts in that of ``right``.
    """
    one, other = sides
    tagged = left.withColumn("_left", F.lit(True)).unionAll(right.withColumn("_left", F.lit(False)))
    is_left = F.col("_left")
    found = tagged.groupBy(*keys).agg(
        F.count_if(is_left).alias("_lefts"),
        F.count_if(~is_left).alias("_rights"),
        F.first(F.when(is_left, F.col("_row")), ignorenulls=True).alias(one),
        F.first(F.when(~is_left, F.col("_row")), ignorenulls=True).alias(other),
        F.coalesce(F.max(F.when(~is_left, F.col("_window"))), F.max("_window")).alias("_window"),
    )
    verdict = (
        F.when((F.col("_lefts") > 1) | (F.col("_rights") > 1), "doubled")
        .when(F.col("_rights") == 0, f"only_{one}")
        .when(F.col("_lefts") == 0, f"only_{other}")
        .when(F.col(one).eqNullSafe(F.col(other)), "equal")
        .otherwise("changed")
    )
    return found.select(*keys, "_window", one, other, verdict.alias("verdict"))


def differences(left: "DataFrame", right: "DataFrame", keys: list[str], sides: tuple[str, str]) -> "DataFrame":
    """One row per window: ``window_start``, ``keys``, and how many of them are ``equal``, ``changed``, ``doubled`` or
    ``only_<side>`` of either side, with a ``sample`` of what differs.
    """
    return counted(matched(left, right, keys, sides), sides)


def counted(keys: "DataFrame", sides: tuple[str, str] = LAYERS) -> "DataFrame":
    """What :func:`matched` found, per window: see :func:`differences`."""
    one, other = sides
    named = [c for c in keys.columns if c not in ("window_start", "_window", "verdict", one, other)]
    difference = F.when(F.col("verdict") != "equal", F.to_json(F.struct(*named, one, other)))
    verdicts = ("equal", "changed", "doubled", f"only_{one}", f"only_{other}")
    return keys.groupBy(F.col("_window").alias("window_start")).agg(
        F.count("*").alias("keys"),
        *(F.count_if(F.col("verdict") == v).alias(v) for v in verdicts),
        F.min(difference).alias("sample"),
    )


def compare(live: "DataFrame", batch: "DataFrame", view: View) -> "DataFrame":
    """The two layers, per window (of a keyed view: per minute): the columns of :func:`differences`, and ``window_end``."""
    return by_window(live, batch, view, LAYERS)


def _with_end(windows: "DataFrame", view: View) -> "DataFrame":
    _, length = view.comparison_window
    return windows.withColumn(
        "window_end", F.col("window_start") + F.make_dt_interval(secs=F.lit(length.total_seconds()))
    )


def window_of(view: View) -> "Column":
    """The window that a row of the view is shown in: its own, or of a keyed view the minute of its instant."""
    return F.expr(view.comparison_window[0])


def _beside(view: View) -> tuple[str, ...]:
    """Columns that may differ: which change came last to an upserted row depends on how the streams interleaved."""
    return ("at",) if view.upserts else ()
