"""Compare few rows of both layers without Spark: the keys that are equal, as nearly all of them are, are only counted.

To open two tables in Spark, to plan a comparison and to shuffle its rows takes seconds, for any number of rows. So Spark gets the
rows of the other keys alone, and its word counts.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
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
    from numpy.typing import NDArray

    from lockstep.settings import Settings

# So many rows of either layer go to Spark with the plan. While it plans a query, it has them several times in its memory.
_MOST_OTHERS = 10_000


@dataclass(frozen=True)
class Compared:
    """Rows of both layers.

    Args:
        windows: of the keys that are equal, the rows of ``by_window``.
        live, batch: the rows of all other keys: they differ, or it is not sure that they do not.
    """

    windows: pa.Table
    live: pa.Table
    batch: pa.Table

    @property
    def others(self) -> int:
        """How many rows a layer has of other keys, at most."""
        return int(max(self.live.num_rows, self.batch.num_rows))


def compare_few(settings: "Settings", view: View, rows: ComparisonInput, closed: str) -> Compared | None:
    """Compare the layers where both have few rows, of which few may differ; None: there are more.

    Args:
        closed: the predicate (SQL that DataFusion knows, too) for the rows that are compared.
    """
    batch = _few(settings, gold_of(view), closed, rows.batch_version)
    live = None if batch is None else _few(settings, live_of(view), closed, rows.live_version)
    found = None if live is None or batch is None else compared(live, batch, view)
    return found if found and found.others <= _MOST_OTHERS else None


def _few(settings: "Settings", table: str, where: str, version: int | None) -> pa.Table | None:
    rows = collect(settings, table, where, version=version, at_most=SMALL_ROWS + 1)
    return rows if lake.is_small(rows.num_rows) else None


def compared(live: pa.Table, batch: pa.Table, view: View) -> Compared | None:
    """Find the keys that each layer has once, with the same values; None: the tables cannot be compared here. Pure.

    It is not sure of NaN, of keys that are null, and of keys that have fields of their own.
    """
    keys, values = list(view.key), values_of(view, batch.column_names)
    if not {*keys, *values} <= {*live.column_names} or any(pa.types.is_nested(batch[key].type) for key in keys):
        return None
    numbered = [
        rows.select(keys).append_column(side, pa.array(np.arange(rows.num_rows)))
        for side, rows in (("live", live), ("batch", batch))
    ]
    pairs = numbered[0].join(numbered[1], keys, join_type="inner")
    left, right = pairs["live"].to_numpy(), pairs["batch"].to_numpy()
    once = (np.bincount(left)[left] == 1) & (np.bincount(right)[right] == 1)
    left, right = left[once], right[once]
    equal = np.ones(len(left), dtype=bool)
    for name in values:
        equal &= _same(live[name].take(pa.array(left)), batch[name].take(pa.array(right)))
    left, right = left[equal], right[equal]
    windows = _counted(_starts(view, batch).take(pa.array(right)), view)
    return Compared(windows, _without(live, left), _without(batch, right))


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> "NDArray[np.bool_]":
    """Which values are the same, or both null."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([one == other for one, other in pairs], dtype=bool)
    both_null = pc.and_(left.is_null(), right.is_null())
    same: NDArray[np.bool_] = pc.or_(both_null, pc.fill_null(pc.equal(left, right), False)).to_numpy()
    return same


def _without(rows: pa.Table, places: "NDArray[np.int64]") -> pa.Table:
    mask = np.ones(rows.num_rows, dtype=bool)
    mask[places] = False
    return rows.filter(pa.array(mask))


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


def together(some: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of ``by_window`` of two comparisons of different keys, as one."""
    both = pa.concat_tables([some, others.select(some.column_names).cast(some.schema)])
    counts = ["keys", *(kind.value for kind in Kind)]
    groups = both.group_by(["window_start", "window_end"], use_threads=False)
    found = groups.aggregate([*((name, "sum") for name in counts), ("sample", "first")])
    names = {**{f"{name}_sum": name for name in counts}, "sample_first": "sample"}
    return found.rename_columns([names.get(name, name) for name in found.column_names]).select(some.column_names)
