"""The input rows of keyed views as events for their machines: the same from silver (batch) and from the parser (live). Pure."""

from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition import states
from lockstep.definition.columns import POSITION, TIMESTAMP_FORMAT, ddl, generation
from lockstep.definition.keyed import Event, Input, Keyed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    # The label of a view, the view, and one of its inputs.
    Reader = tuple[str, Keyed, Input]

# One event of a machine.
COLUMNS = {
    "_key": "STRING",
    "_time": "BIGINT",
    "_id": "STRING",
    "_stream": "STRING",
    "_position": "STRING",
    "_data": "STRING",
}
# Which record it comes from, and the record's Kafka timestamp (milliseconds, UTC).
OF_THE_RECORD = {"_partition": "INT", "_offset": "BIGINT", "_timestamp": "BIGINT"}
LIVE_COLUMNS = {"_view": "STRING", **COLUMNS, **OF_THE_RECORD}
_NO_EVENT = """named_struct('_view', CAST(NULL AS STRING), '_keys', array(CAST(NULL AS STRING)),
    '_time', CAST(NULL AS BIGINT), '_data', CAST(NULL AS STRING))"""
# Null fields and microseconds are kept, so that two texts are equal only if their rows are.
EXACT_JSON = {"ignoreNullFields": "false", "timestampFormat": TIMESTAMP_FORMAT}


def events(views: "Mapping[str, Keyed]", rows: "Mapping[str, DataFrame]") -> "DataFrame":
    """The events of the views: one for each row that counts, and for each machine that gets it. Each row is read once.

    Args:
        views: by the label that ``_view`` gets.
        rows: by stream, good rows with the payload's columns and provenance. A stream that no view reads gives no event.

    Returns:
        ``_view`` and :data:`COLUMNS`; ``_time`` in microseconds since the epoch (UTC).
    """
    return _union(views, rows, every_record=False).select(*(n for n in LIVE_COLUMNS if n not in OF_THE_RECORD))


def events_and_records(views: "Mapping[str, Keyed]", rows: "Mapping[str, DataFrame]") -> "DataFrame":
    """The same from the parser, and for each record of an event stream a row without ``_view``, key and data.

    Args:
        rows: by stream; of events also such as are not ``_good``.

    Returns:
        :data:`LIVE_COLUMNS`.
    """
    return _union(views, rows, every_record=True).select(*LIVE_COLUMNS)


def _union(views: "Mapping[str, Keyed]", rows: "Mapping[str, DataFrame]", every_record: bool) -> "DataFrame":
    readers = {
        stream: [(label, view, read) for label, view in views.items() for read in view.inputs if read.stream == stream]
        for stream in rows
    }
    of_streams = (_of_stream(stream, readers[stream], of, every_record) for stream, of in rows.items())
    return reduce(lambda left, right: left.unionAll(right), of_streams)


def _of_stream(stream: str, readers: "Sequence[Reader]", rows: "DataFrame", every_record: bool) -> "DataFrame":
    is_change = CONTRACTS[stream].kind == "changes"
    if is_change:
        rows, keys = _changes(stream, readers, rows)
    else:
        good = F.col("_good") if every_record else F.lit(True)
        keys = [F.when(good & F.expr(view.counts(read.time)), _keys(read)) for _, view, read in readers]
    extra = ("_deleted",) if is_change else ()
    found = [F.coalesce(F.size(of_input), F.lit(0)) > 0 for of_input in keys]
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
    if every_record and not is_change:
        inputs.append(F.expr(_NO_EVENT))
    none = F.array().cast("array<struct<_view: string, _keys: array<string>, _time: bigint, _data: string>>")
    of_inputs = rows.select(
        F.concat_ws("/", *(F.col(name).cast("string") for name in CONTRACTS[stream].unique_id)).alias("_id"),
        position(stream).alias("_position"),
        "_partition",
        "_offset",
        F.unix_millis("_arrival").alias("_timestamp"),
        F.explode(F.array_compact(F.array(*inputs)) if inputs else none).alias("_input"),
    )
    return of_inputs.select(
        F.col("_input._view").alias("_view"),
        F.explode("_input._keys").alias("_key"),
        F.col("_input._time").alias("_time"),
        "_id",
        F.lit(stream).alias("_stream"),
        "_position",
        F.col("_input._data").alias("_data"),
        *OF_THE_RECORD,
    )


def _changes(stream: str, readers: "Sequence[Reader]", changes: "DataFrame") -> "tuple[DataFrame, list[Column]]":
    """The rows before and after each change, and the machines of each of them, by reader.

    A change goes to the keys that its row has now. Where an update took the row from another key, that one gets a delete.
    """
    names = [name for name in changes.columns if not name.startswith("_")]
    provenance = ("_arrival", "_partition", "_offset", *POSITION, "_committed_at")
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


def position(stream: str) -> "Column":
    """Where a change stands in its source's log: a text that sorts as its generation, its commit's LSN and its own LSN do.

    It is null for an event. Each number has a letter before it for how many digits it has, and no zeros: machines remember many.
    """
    if CONTRACTS[stream].kind != "changes":
        return F.lit(None).cast("string")
    texts = [number.cast("string") for number in (generation(), F.col("_commit_lsn"), F.col("_lsn"))]
    return F.concat_ws("", *(part for text in texts for part in (F.chr(F.length(text) + ord("a")), text)))


def time_of(row: "Mapping[str, Any]") -> datetime:
    """When the event of a row of :data:`COLUMNS` happened (UTC)."""
    return states.from_micros(row["_time"])


def event(row: "Mapping[str, Any]") -> Event:
    """One event out of a row of :data:`COLUMNS`."""
    return Event(time_of(row), row["_id"], row["_stream"], states.loads(row["_data"]), row["_position"])


def as_rows(table: "pa.Table | pa.RecordBatch") -> "Iterator[tuple[Any, ...]]":
    """The rows of Arrow, as tuples. Texts and whole numbers come as arrays, in a sixth of the time that ``to_pylist`` takes."""
    return zip(*map(_values, table.columns), strict=True)


def as_dicts(table: "pa.Table | pa.RecordBatch") -> "Iterator[dict[str, Any]]":
    """The rows of Arrow by column, as ``to_pylist`` gives them."""
    names = table.column_names
    return (dict(zip(names, row, strict=True)) for row in as_rows(table))


def _values(column: "pa.ChunkedArray | pa.Array") -> list[Any]:
    import pyarrow as pa

    # With nulls, whole numbers would become such with a fraction.
    as_array = pa.types.is_string(column.type) or (pa.types.is_integer(column.type) and not column.null_count)
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist() if as_array else column.to_pylist()
    return found
