"""A view's rows as the batch layer computes them from records, and in a form in which they can be compared."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep.batch.compute import result
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.refine.duplicates import classify
from lockstep.refine.parse import parse
from lockstep.refine.tokens import struct_of, tokens_by
from lockstep.testing.records import START, Sent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract

_BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
# All windows and timers of made-up records lie within it.
_AROUND = timedelta(days=30)


def batch_rows(spark: "SparkSession", view: View, sent: Mapping[str, list[Sent]]) -> list[dict[str, Any]]:
    """The view's rows: the records parsed and deduplicated by their contracts, and the view computed over them.

    No table is read or written, and no database: the key of a person's tokens is the token of her subject. A keyed view's rows
    have ``at`` only where it belongs to the key, as its oracle's have.
    """
    silver = {stream: _silver(spark, stream, sent[stream]) for stream in view.streams}
    rows = result(view, silver, START - _AROUND, START + _AROUND).collect()
    left_out = {"at"} - {*view.key, *view.columns}
    return [{k: v for k, v in row.asDict(recursive=True).items() if k not in left_out} for row in rows]


def _silver(spark: "SparkSession", stream: str, sent: list[Sent]) -> "DataFrame":
    contract = CONTRACTS[stream]
    rows = [(contract.topic, s.partition, s.offset, s.arrival, None, s.payload, None) for s in sent]
    parsed = parse(spark.createDataFrame(rows, _BRONZE), contract, tokens=_tokens)
    return classify(parsed, None, contract).where("_outcome = 'silver'")


def _tokens(contract: "Contract") -> "Mapping[str, Column]":
    return tokens_by(contract, _of_subjects)


def _of_subjects(subjects: pa.Array, *columns: pa.Array) -> pa.Array:
    return struct_of(subjects, columns, lambda names: {name: name.encode() for name in names})


def comparable(rows: Iterable[Mapping[str, Any]], without: Iterable[str] = ()) -> Counter[str]:
    """The rows as a bag of texts, whatever their order and however their values are spelled.

    Args:
        without: columns that are left out.
    """
    left_out = {*without}
    return Counter(str(sorted((k, _plain(v)) for k, v in row.items() if k not in left_out)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        # Spark gives its timestamps as naive UTC.
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, dict):
        return sorted((k, _plain(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
