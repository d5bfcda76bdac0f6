"""A TRUNCATE, as one delete for each row that it has ended. They are written to the topic, so that all readers get them alike.

Debezium tells of a TRUNCATE in one record without a row. A live query keeps its state by key, and could not tell which of its
keys the record concerns. Silver knows the table's rows. So refine writes their deletes after the TRUNCATE, with its position in
the source's log: rows that were inserted after it are newer than they are, and stay.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.definition.columns import POSITION, generation
from lockstep.definition.tables import bronze_of
from lockstep.kafka_clients import producer
from lockstep.refine.parse import GENERATION, GOOD, US

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# A position, and the time of the commit (milliseconds, UTC).
Truncate = tuple[int, ...]
# Deletes that are sent before the broker's answers are awaited: some megabytes.
_AT_ONCE = 5_000


def newest_truncate(rows: "DataFrame", before: Truncate | None) -> Truncate | None:
    """The newest TRUNCATE among the rows of a run, or the one before them."""
    at = F.coalesce(F.unix_millis("_committed_at"), F.lit(0))
    of_run = rows.where("_truncates").select(*POSITION, at)
    return max([*(tuple(row) for row in of_run.collect()), *([before] if before else [])], default=None)


def with_ended(changes: "DataFrame", truncate: Truncate | None) -> "DataFrame":
    """Add ``_ended``: a valid change that came after a TRUNCATE, from another partition, and is older than it."""
    ended = F.expr(GOOD) & ~F.col("_deleted") & is_before(truncate) if truncate else F.lit(False)
    return changes.withColumn("_ended", F.coalesce(ended, F.lit(False)))


def is_before(truncate: Truncate) -> "Column":
    """Whether a change is older than the TRUNCATE."""
    position = F.struct(generation().alias("g"), F.col("_commit_lsn").alias("c"), F.col("_lsn").alias("l"))
    of_truncate = zip(("int", "bigint", "bigint"), "gcl", truncate[:3], strict=True)
    return position < F.struct(*(F.lit(value).cast(kind).alias(name) for kind, name, value in of_truncate))


def write_deletes(
    spark: "SparkSession", settings: "Settings", contract: "Contract", current: str, truncate: Truncate
) -> None:
    """Write a delete for each current row that is older than the TRUNCATE to the topic.

    If it runs twice, silver finds the second ones to be duplicates.

    Args:
        current: the table with the current rows.
    """
    ended = lake.read(spark, settings, current).where(~F.col("_deleted") & is_before(truncate))
    places = ended.select(F.col("_partition").alias("partition"), F.col("_offset").alias("offset"))
    records = lake.read(spark, settings, bronze_of(contract)).join(places, ["partition", "offset"], "left_semi")
    with closing(producer(settings)) as kafka:
        found, headers = _records(records), [(GENERATION, str(truncate[0]).encode())]
        while some := [*islice(found, _AT_ONCE)]:
            answers = [
                kafka.send(contract.topic, delete_of(value, truncate), key, headers=headers, partition=partition)
                for partition, key, value in some
            ]
            kafka.flush()
            for answer in answers:
                # Raises what has kept it from being written.
                answer.get()


def _records(records: "DataFrame") -> Iterator[tuple[int, bytes | None, bytes]]:
    for row in records.select("partition", "key", "value").toLocalIterator():
        yield row["partition"], row["key"] and bytes(row["key"]), bytes(row["value"])


def delete_of(change: bytes, truncate: Truncate) -> bytes:
    """The delete of the row that a change (Debezium's JSON) has left. Pure."""
    told: dict[str, Any] = json.loads(change)
    _, commit, lsn, at = truncate
    source = told["source"] | {
        "connector": US,
        "snapshot": "false",
        "lsn": lsn,
        "sequence": json.dumps([str(commit), str(lsn)]),
        "ts_ms": at,
    }
    return json.dumps({"before": told["after"], "after": None, "op": "d", "source": source, "ts_ms": at}).encode()
