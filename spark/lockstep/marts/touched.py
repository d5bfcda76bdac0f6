"""Which days of the marts the new rows of a table touch: those of their event times, also before an update."""

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.quality.slices import Slice
    from lockstep.settings import Settings

# Days that one run of dbt builds. What has been built is not built again if the task dies.
MOST_DAYS = 31
# A weekend without sales. A run of dbt costs more than two days that are built again as they are.
MOST_DAYS_BETWEEN = 2
# ``[start, end)``: two midnights in UTC.
Span = tuple[datetime, datetime]


def touched(spark: "SparkSession", settings: "Settings", new: "Slice") -> set[date]:
    """The days (UTC) that new rows of a table of silver or gold touch.

    A row that an update took to another day touches both. A delete touches the day of the row that it deleted.
    """
    rows, times = _rows(spark, settings, new.table)
    days = F.explode(F.array(*map(F.to_date, times))).alias("day")
    return {row["day"] for row in rows.where(new.where).select(days).where("day IS NOT NULL").distinct().collect()}


def _rows(spark: "SparkSession", settings: "Settings", table: str) -> "tuple[DataFrame, list[Column]]":
    layer, _, name = table.partition(".")
    if layer == "gold":
        return lake.read(spark, settings, table), [F.col(VIEWS[name].time_column)]
    contract = CONTRACTS[name]
    event_time = F.col(contract.event_time)
    log = lake.read(spark, settings, Tables.of(contract).log)
    if contract.kind == "events":
        return log, [event_time]
    return log, [event_time, F.from_json("_before", f"{contract.event_time} TIMESTAMP")[contract.event_time]]


def spans(days: "Iterable[date]") -> list[Span]:
    """The days as few spans, the newest first, none longer than :data:`MOST_DAYS`. Pure.

    A span may have up to :data:`MOST_DAYS_BETWEEN` other days between two of its own.
    """
    found: list[list[date]] = []
    for day in sorted(set(days), reverse=True):
        near = found and (found[-1][-1] - day).days <= MOST_DAYS_BETWEEN + 1
        if near and (found[-1][0] - day).days < MOST_DAYS:
            found[-1].append(day)
        else:
            found.append([day])
    return [(_midnight(of[-1]), _midnight(of[0] + timedelta(days=1))) for of in found]


def whole(days: "Collection[date]") -> list[Span]:
    """One span from the first of the days to the last; none without days. Pure."""
    return [(_midnight(min(days)), _midnight(max(days) + timedelta(days=1)))] if days else []


def days_of(span: Span) -> set[date]:
    """The days of a span."""
    start, end = span
    return {(start + timedelta(days=n)).date() for n in range((end - start).days)}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
