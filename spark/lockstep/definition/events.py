"""A keyed view's input rows as events for its machines: the same from silver (batch) and from the parser (live). Pure."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import states
from lockstep.definition.columns import TIMESTAMP_FORMAT, ddl
from lockstep.definition.keyed import Event, Input, Keyed
from lockstep.definition.view import EPOCH, MICROSECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

COLUMNS = {
    "_key": "STRING",
    "_time": "BIGINT",
    "_id": "STRING",
    "_stream": "STRING",
    "_position": "STRING",
    "_data": "STRING",
}
# Null fields and microseconds are kept, so that two texts are equal only if their rows are.
EXACT_JSON = {"ignoreNullFields": "false", "timestampFormat": TIMESTAMP_FORMAT}


def events(view: Keyed, rows: "Mapping[str, DataFrame]") -> "DataFrame":
    """The view's events: one for each row of its inputs that counts, and for each machine that gets it.

    Args:
        rows: for each of the view's streams, good rows with the payload's columns and provenance.

    Returns:
        :data:`COLUMNS` and ``_arrival``; ``_time`` in microseconds since the epoch (UTC).
    """
    return reduce(lambda left, right: left.unionAll(right), (_of_input(view, i, rows[i.stream]) for i in view.inputs))


def _of_input(view: Keyed, read: Input, rows: "DataFrame") -> "DataFrame":
    rows = _changes(read, rows) if read.is_table else _counting(view, read, rows)
    extra = ("_deleted",) if read.is_table else ()
    return rows.select(
        # Outer, although no array is empty: for explode, the optimiser puts a filter below the watermark.
        F.explode_outer("_keys").alias("_key"),
        F.unix_micros(F.expr(read.time)).alias("_time"),
        F.concat_ws("/", *(F.col(name).cast("string") for name in CONTRACTS[read.stream].unique_id)).alias("_id"),
        F.lit(read.stream).alias("_stream"),
        _position(read).alias("_position"),
        F.to_json(F.struct(*read.columns, *extra), EXACT_JSON).alias("_data"),
        "_arrival",
    )


def _counting(view: Keyed, read: Input, rows: "DataFrame") -> "DataFrame":
    # One expression that needs the arrival. The optimiser pushes a filter on other columns below the watermark, and rows that it
    # removes, such as heartbeats, would not move the watermark on.
    counts = F.expr(view.counts(read.time))
    matching = rows.where(F.when(counts & (F.size(_keys(read)) > 0), F.col("_arrival")).isNotNull())
    return matching.withColumn("_keys", _keys(read))


def _changes(read: Input, changes: "DataFrame") -> "DataFrame":
    """A change goes to the keys that its row has now. Where an update took the row from another key, that one gets a delete."""
    names = [name for name in changes.columns if not name.startswith("_")]
    provenance = ("_arrival", "_lsn", "_commit_lsn", "_committed_at")
    before = F.from_json("_before", ddl(CONTRACTS[read.stream].columns))
    with_both = changes.withColumns({"_now": _keys(read), "_was": before})
    current = F.struct(*names, "_deleted", F.lit(False).alias("_past"))
    yes = F.lit(True)
    past = F.struct(*(F.col(f"_was.{name}").alias(name) for name in names), yes.alias("_deleted"), yes.alias("_past"))
    images = F.when(F.col("_was").isNull(), F.array(current)).otherwise(F.array(past, current))
    rows = with_both.select(*provenance, "_now", F.explode(images).alias("_image")).select(
        *provenance, "_now", "_image.*"
    )
    keys = F.when(F.col("_past"), F.array_except(_keys(read), F.col("_now"))).otherwise(F.col("_now"))
    return rows.withColumn("_keys", keys).where("size(_keys) > 0")


def _keys(read: Input) -> "Column":
    """The machines that get a row, each once; none for a row that ``where`` leaves out."""
    return F.expr(f"IF({read.where}, filter(array_distinct({read.machines}), k -> k IS NOT NULL), array())")


def _position(read: Input) -> "Column":
    if not read.is_table:
        return F.lit(None).cast("string")
    # An LSN has at most 20 digits. With zeros before them, the texts sort as the numbers do.
    return F.concat_ws("/", *(F.lpad(F.col(c).cast("string"), 20, "0") for c in ("_commit_lsn", "_lsn")))


def time_of(row: "Mapping[str, Any]") -> datetime:
    """When the event of a row of :data:`COLUMNS` happened (UTC)."""
    return EPOCH + timedelta(microseconds=row["_time"])


def micros(instant: datetime) -> int:
    """An instant as ``_time`` has it: the inverse of :func:`time_of`."""
    return (instant.astimezone(UTC) - EPOCH) // MICROSECOND


def event(row: "Mapping[str, Any]") -> Event:
    """One event out of a row of :data:`COLUMNS`."""
    return Event(time_of(row), row["_id"], row["_stream"], states.loads(row["_data"]), row["_position"])
