"""A keyed view's input rows as its machines get them, the same from silver and from the live parser. Pure."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import states
from lockstep.definition.keyed import Event, Input, Keyed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

COLUMNS = "_key STRING, _time BIGINT, _id STRING, _stream STRING, _change BOOLEAN, _data STRING"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def events(view: Keyed, rows: "Mapping[str, DataFrame]") -> "DataFrame":
    """The view's events: one row for each row of its inputs that counts, and for each key that it goes to.

    Args:
        rows: for each of the view's streams, good rows with the payload's columns and provenance.

    Returns:
        :data:`COLUMNS` and ``_arrival``; ``_time`` in microseconds since the epoch (UTC).
    """
    return reduce(lambda one, other: one.unionAll(other), (_of_input(view, i, rows[i.stream]) for i in view.inputs))


def _of_input(view: Keyed, one: Input, rows: "DataFrame") -> "DataFrame":
    # One expression that needs the arrival: a filter on other columns alone is pushed below the watermark, and what it
    # removes, such as a heartbeat, could not move the watermark on.
    conditions = [f"({one.where})"]
    conditions += [] if one.is_table else [view.counts(one.time)]
    conditions += [] if one.key.startswith("explode(") else [f"({one.key}) IS NOT NULL"]
    counts = F.expr(" AND ".join(conditions))
    kept = rows.where(F.when(counts, F.col("_arrival")).isNotNull())
    extra = ("_deleted",) if one.is_table else ()
    return kept.select(
        F.expr(one.key).alias("_key"),
        F.unix_micros(F.expr(one.time)).alias("_time"),
        _id(one).alias("_id"),
        F.lit(one.stream).alias("_stream"),
        F.lit(one.is_table).alias("_change"),
        F.to_json(F.struct(*one.columns, *extra), {"ignoreNullFields": "false"}).alias("_data"),
        "_arrival",
    )


def _id(one: Input) -> "Column":
    unique = F.concat_ws("/", *(F.col(name).cast("string") for name in CONTRACTS[one.stream].unique_id))
    if not one.is_table:
        return unique
    order = F.concat_ws("/", *(F.lpad(F.col(c).cast("string"), 20, "0") for c in ("_commit_lsn", "_lsn")))
    return F.concat_ws("|", order, unique)


def event(row: "Mapping[str, Any]") -> Event:
    """One event out of a row of :data:`COLUMNS`."""
    time = _EPOCH + timedelta(microseconds=row["_time"])
    return Event(time, row["_id"], row["_stream"], states.loads(row["_data"]), row["_change"])
