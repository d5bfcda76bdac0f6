"""The values of a stream as JSON, whatever their format. Pure, and the same in batch and live."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from lockstep.formats import Undecodable, codec
from lockstep.formats.confluent import HEADER, MAGIC, Registered, Writers, unframed
from lockstep.formats.json_text import json_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract
    from lockstep.formats import Codec, Format

_FRAMED = "in Confluent's wire format, which the contract does not say"
_DECODED = "text STRING, reason STRING"
Decoded = tuple[str | None, str | None]


def with_text(records: "DataFrame", contract: "Contract", writers: Writers | None = None) -> "DataFrame":
    """Add ``_text``, the value as JSON, and ``_undecoded``: the reason (for quarantine) why it has none, or null.

    Args:
        writers: of a stream in Confluent's wire format; default: all records have the contract's schema.
    """
    # Not `withColumns`, for which Spark Connect analyses all that comes before.
    if contract.format == "json":
        return records.select("*", *_of_json(is_framed=contract.wire_format == "confluent"))
    decoded = records.select("*", _decoded(contract, writers or own(contract)).alias("_decoded"))
    return decoded.select("*", F.col("_decoded.text").alias("_text"), F.col("_decoded.reason").alias("_undecoded"))


def _of_json(is_framed: bool) -> "list[Column]":
    has_magic = F.startswith(F.col("value"), F.lit(MAGIC))
    text = (F.expr(f"substring(value, {HEADER + 1})") if is_framed else F.col("value")).cast("string")
    wrong = F.when(~has_magic, "no magic byte") if is_framed else F.when(has_magic, _FRAMED)
    # Spark would put U+FFFD in the place of each bad byte, and two ids could become one.
    return [text.alias("_text"), wrong.when(~F.is_valid_utf8(text), "not UTF-8").alias("_undecoded")]


def own(contract: "Contract") -> Writers:
    """Without a registry: all records were written with the schema of the contract."""
    return Writers(otherwise=Registered(contract.format.upper(), contract.schema))


def _decoded(contract: "Contract", writers: Writers) -> "Column":
    kind, is_framed = contract.format, contract.wire_format == "confluent"
    schema, message = contract.schema, contract.message

    def decode(values: pa.Array) -> pa.Array:
        reader = codec(kind, schema, message)
        # For these records the registry is asked once for each id that is not kept.
        schema_of = cache(writers.schema)

        def one(value: bytes | None) -> Decoded:
            if not value:
                return None, None
            try:
                return json_text(_framed(reader, value, kind, schema_of) if is_framed else _plain(reader, value)), None
            except Undecodable as error:
                return None, str(error)

        return _struct([one(value.as_py()) for value in values])

    column: Column = F.arrow_udf(decode, _DECODED)(F.col("value"))  # type: ignore[attr-defined]
    return column


def _plain(reader: "Codec", value: bytes) -> dict[str, Any]:
    try:
        return reader.decode(value)
    except Undecodable:
        if value[:1] == MAGIC and _can_read(reader, value[HEADER:]):
            raise Undecodable(_FRAMED) from None
        raise


def _can_read(reader: "Codec", value: bytes) -> bool:
    try:
        reader.decode(value)
    except Undecodable:
        return False
    return True


def _framed(
    reader: "Codec", value: bytes, kind: "Format", schema_of: Callable[[int], Registered | None]
) -> dict[str, Any]:
    schema_id, body = unframed(value)
    writer = schema_of(schema_id)
    if writer is None:
        raise Undecodable(f"the registry has no schema {schema_id}")
    if writer.kind != kind.upper():
        raise Undecodable(f"schema {schema_id} is {writer.kind}")
    if writer.has_references:
        raise Undecodable(f"schema {schema_id} refers to other schemas")
    return reader.decode_framed(body, writer.text)


def _struct(decoded: Sequence[Decoded]) -> pa.StructArray:
    columns = [pa.array([one[number] for one in decoded], pa.string()) for number in range(2)]
    return pa.StructArray.from_arrays(columns, ["text", "reason"])
