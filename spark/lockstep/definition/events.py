"""The input rows of keyed views as events for their machines: the same from silver (batch) and from the parser (live). Pure."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import states
from lockstep.definition.columns import TIMESTAMP_FORMAT, ddl
from lockstep.definition.keyed import Event, Input, Keyed
from lockstep.definition.view import EPOCH, MICROSECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    # The label of a view, the view, and one of its inputs.
    Reader = tuple[str, Keyed, Input]

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


def events(views: "Mapping[str, Keyed]", rows: "Mapping[str, DataFrame]") -> "DataFrame":
    """The events of the views: one for each row that counts, and for each machine that gets it. Each row is read once.

    Args:
        views: by the label that ``_view`` gets.
        rows: by stream, good rows with the payload's columns and provenance. A stream that no view reads gives no event.

    Returns:
        ``_view``, :data:`COLUMNS` and ``_arrival``; ``_time`` in microseconds since the epoch (UTC).
    """
    readers = {
        stream: [(label, view, read) for label, view in views.items() for read in view.inputs if read.stream == stream]
        for stream in rows
    }
    return reduce(lambda left, right: left.unionAll(right), (_of_stream(s, readers[s], rows[s]) for s in rows))


def _of_stream(stream: str, readers: "Sequence[Reader]", rows: "DataFrame") -> "DataFrame":
    if CONTRACTS[stream].kind == "changes":
        rows, keys = _changes(stream, readers, rows)
    else:
        keys = [F.when(F.expr(view.counts(read.time)), _keys(read)) for _, view, read in readers]
    extra = ("_deleted",) if CONTRACTS[stream].kind == "changes" else ()
    found = [F.coalesce(F.size(of_input), F.lit(0)) > 0 for of_input in keys]
    # One expression that needs the arrival. The optimiser pushes a filter on other columns below the watermark, and rows that it
    # removes, such as heartbeats, would not move the watermark on.
    wanted = rows.where(F.when(reduce(or_, found, F.lit(False)), F.col("_arrival")).isNotNull())
    inputs = [
        F.when(
            has_keys,
            F.struct(
                F.lit(label).alias("_view"),
                of_input.alias("_keys"),
                F.unix_micros(F.expr(read.time)).alias("_time"),
                F.to_json(F.struct(*read.columns, *extra), EXACT_JSON).alias("_data"),
            ),
        )
        for (label, _, read), of_input, has_keys in zip(readers, keys, found, strict=True)
    ]
    none = F.array().cast("array<struct<_view: string, _keys: array<string>, _time: bigint, _data: string>>")
    of_inputs = wanted.select(
        F.concat_ws("/", *(F.col(name).cast("string") for name in CONTRACTS[stream].unique_id)).alias("_id"),
        _position(stream).alias("_position"),
        "_arrival",
        # Outer, although no array is empty: for explode, the optimiser puts a filter below the watermark.
        F.explode_outer(F.array_compact(F.array(*inputs)) if inputs else none).alias("_input"),
    )
    return of_inputs.select(
        F.col("_input._view").alias("_view"),
        F.explode_outer("_input._keys").alias("_key"),
        F.col("_input._time").alias("_time"),
        "_id",
        F.lit(stream).alias("_stream"),
        "_position",
        F.col("_input._data").alias("_data"),
        "_arrival",
    )


def _changes(stream: str, readers: "Sequence[Reader]", changes: "DataFrame") -> "tuple[DataFrame, list[Column]]":
    """The rows before and after each change, and the machines of each of them, by reader.

    A change goes to the keys that its row has now. Where an update took the row from another key, that one gets a delete.
    """
    names = [name for name in changes.columns if not name.startswith("_")]
    provenance = ("_arrival", "_lsn", "_commit_lsn", "_committed_at")
    before = F.from_json("_before", ddl(CONTRACTS[stream].columns))
    now = {f"_now_{number}": _keys(read) for number, (_, _, read) in enumerate(readers)}
    with_both = changes.withColumns({**now, "_was": before})
    current = F.struct(*names, "_deleted", F.lit(False).alias("_past"))
    yes = F.lit(True)
    past = F.struct(*(F.col(f"_was.{name}").alias(name) for name in names), yes.alias("_deleted"), yes.alias("_past"))
    images = F.when(F.col("_was").isNull(), F.array(current)).otherwise(F.array(past, current))
    rows = with_both.select(*provenance, *now, F.explode(images).alias("_image")).select(*provenance, *now, "_image.*")
    keys = [
        F.when(F.col("_past"), F.array_except(_keys(read), F.col(of_row))).otherwise(F.col(of_row))
        for of_row, (_, _, read) in zip(now, readers, strict=True)
    ]
    return rows, keys


def _keys(read: Input) -> "Column":
    """The machines that get a row, each once; none for a row that ``where`` leaves out."""
    return F.expr(f"IF({read.where}, filter(array_distinct({read.machines}), k -> k IS NOT NULL), array())")


def _position(stream: str) -> "Column":
    if CONTRACTS[stream].kind != "changes":
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
