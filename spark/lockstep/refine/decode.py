"""The values of a stream as JSON, whatever their format. Pure, and the same in batch and live."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from lockstep.formats import Undecodable, codec
from lockstep.formats.json_text import json_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract

_DECODED = "text STRING, reason STRING"
Decoded = tuple[str | None, str | None]


def with_text(records: "DataFrame", contract: "Contract") -> "DataFrame":
    """Add ``_text``, the value as JSON, and ``_undecoded``: the reason (for quarantine) why it has none, or null."""
    if contract.format == "json":
        text = F.col("value").cast("string")
        # Spark would put U+FFFD in the place of each bad byte, and two ids could become one.
        return records.withColumns({"_text": text, "_undecoded": F.when(~F.is_valid_utf8(text), "not UTF-8")})
    return records.withColumn("_decoded", _decoded(contract)).withColumns(
        {"_text": F.col("_decoded.text"), "_undecoded": F.col("_decoded.reason")}
    )


def _decoded(contract: "Contract") -> "Column":
    kind, schema = contract.format, contract.schema

    def decode(values: pa.Array) -> pa.Array:
        reader = codec(kind, schema)

        def one(value: bytes | None) -> Decoded:
            if not value:
                return None, None
            try:
                return json_text(reader.decode(value)), None
            except Undecodable as error:
                return None, str(error)

        return _struct(one(value.as_py()) for value in values)

    column: Column = F.arrow_udf(decode, _DECODED)(F.col("value"))  # type: ignore[attr-defined]
    return column


def _struct(decoded: Iterator[Decoded]) -> pa.StructArray:
    texts, reasons = zip(*decoded, strict=True)
    return pa.StructArray.from_arrays(
        [pa.array(texts, pa.string()), pa.array(reasons, pa.string())], ["text", "reason"]
    )
