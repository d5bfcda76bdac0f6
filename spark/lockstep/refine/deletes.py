"""Deletes that refine writes to the topic of a captured table, for rows that have ended without a record of their own.

A live query keeps its state by key, and could not tell which of its keys such an end concerns. Silver knows the table's rows. So
their deletes are written to the topic, and all readers get them alike.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.definition.tables import bronze_of
from lockstep.kafka_clients import producer
from lockstep.refine.parse import GENERATION, US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# Deletes that are sent before the broker's answers are awaited: some megabytes.
_AT_ONCE = 5_000


@dataclass(frozen=True)
class End:
    """Where in the source's log a row has ended, and when (milliseconds, UTC)."""

    generation: int
    commit_lsn: int
    lsn: int
    at: int


def write(spark: "SparkSession", settings: "Settings", contract: "Contract", ended: "DataFrame") -> None:
    """Write a delete for each of these rows to the topic. If it runs twice, silver finds the second ones to be duplicates.

    Args:
        ended: ``_partition`` and ``_offset`` of the record that each row comes from, and the fields of its :class:`End`.
    """
    fields = [*End.__dataclass_fields__]
    places = ended.selectExpr("_partition AS partition", "_offset AS offset", f"struct({', '.join(fields)}) AS end")
    records = lake.read(spark, settings, bronze_of(contract)).join(places, ["partition", "offset"])
    with closing(producer(settings)) as kafka:
        found = _records(records)
        while some := [*islice(found, _AT_ONCE)]:
            answers = [
                kafka.send(
                    contract.topic,
                    delete_of(value, end),
                    key,
                    headers=[(GENERATION, str(end.generation).encode())],
                    partition=partition,
                )
                for partition, key, value, end in some
            ]
            kafka.flush()
            for answer in answers:
                # Raises what has kept it from being written.
                answer.get()


def _records(records: "DataFrame") -> Iterator[tuple[int, bytes | None, bytes, End]]:
    for row in records.select("partition", "key", "value", "end").toLocalIterator():
        yield row["partition"], row["key"] and bytes(row["key"]), bytes(row["value"]), End(**row["end"].asDict())


def delete_of(change: bytes, end: End) -> bytes:
    """The delete of the row that a change (Debezium's JSON) has left. Pure."""
    told: dict[str, Any] = json.loads(change)
    source = told["source"] | {
        "connector": US,
        "snapshot": "false",
        "lsn": end.lsn,
        "sequence": json.dumps([str(end.commit_lsn), str(end.lsn)]),
        "ts_ms": end.at,
    }
    return json.dumps({"before": told["after"], "after": None, "op": "d", "source": source, "ts_ms": end.at}).encode()
