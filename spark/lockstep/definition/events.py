"""A keyed view's input rows as its machines get them, the same from silver and from the live parser. Pure."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import states
from lockstep.definition.columns import ddl
from lockstep.definition.keyed import Event, Input, Keyed

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
# Nothing is left out and no microsecond is lost, so that equal rows, and only those, are equal as text.
EXACT_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
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
    rows = _filed(one, rows) if one.is_table else _counting(view, one, rows)
    extra = ("_deleted",) if one.is_table else ()
    return rows.select(
        # Outer, though there are no empty ones: the optimiser would put a filter for them below the watermark.
        F.explode_outer("_keys").alias("_key"),
        F.unix_micros(F.expr(one.time)).alias("_time"),
        F.concat_ws("/", *(F.col(name).cast("string") for name in CONTRACTS[one.stream].unique_id)).alias("_id"),
        F.lit(one.stream).alias("_stream"),
        _position(one).alias("_position"),
        F.to_json(F.struct(*one.columns, *extra), EXACT_JSON).alias("_data"),
        "_arrival",
    )


def _counting(view: Keyed, one: Input, rows: "DataFrame") -> "DataFrame":
    # One expression that needs the arrival: a filter on other columns alone is pushed below the watermark, and what it
    # removes, such as a heartbeat, could not move the watermark on.
    counts = F.expr(view.counts(one.time))
    kept = rows.where(F.when(counts & (F.size(_keys(one)) > 0), F.col("_arrival")).isNotNull())
    return kept.withColumn("_keys", _keys(one))


def _filed(one: Input, changes: "DataFrame") -> "DataFrame":
    """A change goes to the keys that its row has now; where an update took it from other keys, it is a delete there."""
    names = [name for name in changes.columns if not name.startswith("_")]
    place = ("_arrival", "_lsn", "_commit_lsn", "_committed_at")
    was = F.from_json("_before", ddl(CONTRACTS[one.stream].columns))
    now = changes.withColumns({"_now": _keys(one), "_was": was})
    current = F.struct(*names, "_deleted", F.lit(False).alias("_past"))
    yes = F.lit(True)
    past = F.struct(*(F.col(f"_was.{name}").alias(name) for name in names), yes.alias("_deleted"), yes.alias("_past"))
    images = F.when(F.col("_was").isNull(), F.array(current)).otherwise(F.array(past, current))
    rows = now.select(*place, "_now", F.explode(images).alias("_image")).select(*place, "_now", "_image.*")
    keys = F.when(F.col("_past"), F.array_except(_keys(one), F.col("_now"))).otherwise(F.col("_now"))
    return rows.withColumn("_keys", keys).where("size(_keys) > 0")


def _keys(one: Input) -> "Column":
    """The machines of a row, each once: none where it does not matter."""
    return F.expr(f"IF({one.where}, filter(array_distinct({one.machines}), k -> k IS NOT NULL), array())")


def _position(one: Input) -> "Column":
    if not one.is_table:
        return F.lit(None).cast("string")
    # A LSN has at most 20 digits: with zeros before them, the texts sort as the numbers do.
    return F.concat_ws("/", *(F.lpad(F.col(c).cast("string"), 20, "0") for c in ("_commit_lsn", "_lsn")))


def event(row: "Mapping[str, Any]") -> Event:
    """One event out of a row of :data:`COLUMNS`."""
    time = _EPOCH + timedelta(microseconds=row["_time"])
    return Event(time, row["_id"], row["_stream"], states.loads(row["_data"]), row["_position"])
