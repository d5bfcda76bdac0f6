"""Find out without Spark that both layers are equal, as they are nearly always, where the rows are few.

To open two tables in Spark, to plan a comparison and to shuffle its rows takes seconds, for any number of rows. Where this finds
that a row differs, or is not sure, Spark compares, and its word counts.
"""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lockstep import lake
from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of
from lockstep.lake.small_commits import collect
from lockstep.lake.writes import SMALL_ROWS
from lockstep.reconcile.compare import values_of
from lockstep.reconcile.difference import Kind
from lockstep.reconcile.inputs import ComparisonInput

if TYPE_CHECKING:
    from lockstep.settings import Settings


def equal_windows(settings: "Settings", view: View, rows: ComparisonInput, closed: str) -> pa.Table | None:
    """The rows of ``by_window`` where both layers have few rows, which are all equal; None: they are many, or may differ.

    Args:
        closed: the predicate (SQL that DataFusion knows, too) for the rows that are compared.
    """
    batch = _few(settings, gold_of(view), closed, rows.batch_version)
    live = None if batch is None else _few(settings, live_of(view), closed, rows.live_version)
    return None if live is None or batch is None else windows_of_equal(live, batch, view)


def _few(settings: "Settings", table: str, where: str, version: int | None) -> pa.Table | None:
    rows = collect(settings, table, where, version=version, at_most=SMALL_ROWS + 1)
    return rows if lake.is_small(rows.num_rows) else None


def windows_of_equal(live: pa.Table, batch: pa.Table, view: View) -> pa.Table | None:
    """The rows of ``by_window`` of two tables that are equal; None: they are not, or it is not sure. Pure.

    It is not sure of NaN, and of keys that have fields of their own.
    """
    keys = list(view.key)
    compared = [*keys, *values_of(view, batch.column_names)]
    if not set(compared) <= set(live.column_names) or any(pa.types.is_nested(batch[key].type) for key in keys):
        return None
    order = [(key, "ascending") for key in keys]
    left, right = (rows.select(compared).sort_by(order).combine_chunks() for rows in (live, batch))
    if not left.equals(right) or right.group_by(keys).aggregate([]).num_rows < right.num_rows:
        return None
    return _counted(_starts(view, batch), view)


def _starts(view: View, rows: pa.Table) -> pa.ChunkedArray:
    """The start of the window in which each row is compared: its own, or the minute of its instant."""
    times = rows[view.time_column]
    return times if view.comparison_window[0] == view.time_column else pc.floor_temporal(times, unit="minute")


def _counted(starts: pa.ChunkedArray, view: View) -> pa.Table:
    _, length = view.comparison_window
    windows = pa.table({"window_start": starts}).group_by("window_start").aggregate([([], "count_all")])
    first, keys = windows["window_start"], windows["count_all"]
    none = pa.repeat(pa.scalar(0, pa.int64()), windows.num_rows)
    counts = {kind.value: keys if kind is Kind.EQUAL else none for kind in Kind}
    return pa.table(
        {
            "window_start": first,
            "keys": keys,
            **counts,
            "sample": pa.nulls(windows.num_rows, pa.string()),
            "window_end": pc.add(first, pa.scalar(length, pa.duration("us"))),
        }
    )
