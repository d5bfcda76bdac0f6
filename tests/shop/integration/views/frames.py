"""Runs a windowed view on a few rows: one batch DataFrame, no stream and no table."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import Windowed
from lockstep.definition.columns import ddl
from lockstep.definition.windowing import transform

TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)


def at(minute: float) -> datetime:
    """The instant this many minutes after ten."""
    return TEN + timedelta(minutes=minute)


def transformed(spark: Any, view: Windowed, events: Iterable[tuple[float, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The view's rows over events: the minutes after ten at which they happened, and their columns."""
    columns = CONTRACTS[view.input].columns
    rows = [tuple(({"event_time": at(minute)} | event).get(name) for name in columns) for minute, event in events]
    result = transform(view, spark.createDataFrame(rows, ddl(columns)).withColumn("_arrival", F.col("event_time")))
    return [row.asDict(recursive=True) for row in result.collect()]


def start(row: Mapping[str, Any]) -> str:
    """The start of a row's window, as a time of day in UTC."""
    return f"{row['window_start']:%H:%M}"
