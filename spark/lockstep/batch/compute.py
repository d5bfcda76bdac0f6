"""Compute a view from silver, for an interval of time. Pure."""

from datetime import datetime
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.columns import ddl
from lockstep.definition.events import event, events, micros
from lockstep.definition.keyed import advance, final, in_log_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame


def result(
    view: View, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime, only: "DataFrame | None" = None
) -> "DataFrame":
    """The view's rows for the windows that start, or the instants that lie, in ``[low, high)`` (UTC).

    Args:
        silver: the log of each of the view's streams.
        only: of a keyed view, the machines (``_key``) to compute; None: all.
    """
    return _rows(view, silver, low, high, only).where(view.interval(low, high))


@singledispatch
def _rows(
    view: View, _silver: "Mapping[str, DataFrame]", _low: datetime, _high: datetime, _only: "DataFrame | None"
) -> "DataFrame":
    raise TypeError(f"{view.name} is a {type(view).__name__}, which no layer can run")


@_rows.register(Windowed)
def _windowed(
    view: Windowed,
    silver: "Mapping[str, DataFrame]",
    low: datetime,
    high: datetime,
    only: "DataFrame | None",  # noqa: ARG001
) -> "DataFrame":
    time = F.col(view.event_time)
    rows = silver[view.input].where(view.on_time).where((time >= F.lit(low)) & (time < F.lit(high + view.size)))
    return view.transform(rows)


@_rows.register(Keyed)
def _keyed(
    view: Keyed, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime, only: "DataFrame | None"
) -> "DataFrame":
    is_change = F.col("_position").isNotNull()
    rows = events({view.name: view}, silver).where(is_change | (F.col("_time") < micros(high)))
    if only is not None:
        rows = rows.join(only, "_key", "left_semi")
    if view.lookback is not None:
        rows = rows.where(is_change | (F.col("_time") >= micros(low - view.lookback)))
    spark = rows.sparkSession
    columns = spark.createDataFrame([], ddl(view.output_columns)).schema
    return rows.groupBy("_key").applyInArrow(_machine(view, high, columns), columns)


def _machine(view: Keyed, until: datetime, columns: Any) -> "Callable[[pa.Table], pa.Table]":
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(columns)

    def run(rows: "pa.Table") -> "pa.Table":
        import pyarrow as pa

        of_key = [event(row) for row in rows.to_pylist()]
        in_order = [*in_log_order(of_key), *sorted(e for e in of_key if not e.is_change)]
        _, out = advance(view, None, in_order, until)
        return pa.Table.from_pylist(final(view, out), schema=schema)

    return run
