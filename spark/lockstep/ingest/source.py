"""Kafka as Spark reads it: the same columns from exact ranges (batch) and from a subscription (live)."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep.control import erased
from lockstep.ingest.redaction import redacted
from lockstep.kafka_clients import java_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.ledger.ranges import Range
    from lockstep.settings import Settings


def read_range(spark: "SparkSession", settings: "Settings", ranges: "list[Range]") -> "DataFrame":
    """The committed records of the ranges, and no others, in bronze's columns. Those that were erased have their position alone.

    Args:
        ranges: of one topic, at most one for each partition, and at least one that is not empty.

    Raises:
        ValueError: a partition has two ranges. Spark's source would read only one of them.
    """
    not_empty = [r for r in ranges if r.size]
    topic = not_empty[0].topic
    if len({(r.topic, r.partition) for r in not_empty}) < len(not_empty):
        raise ValueError(f"{topic}: a partition has two ranges among {not_empty}, and Kafka's reader takes one")
    reader = (
        spark.read.format("kafka")
        .options(**_options(settings))
        .option("assign", json.dumps({topic: [r.partition for r in not_empty]}))
        .option("startingOffsets", json.dumps({topic: {r.partition: r.start for r in not_empty}}))
        .option("endingOffsets", json.dumps({topic: {r.partition: r.end for r in not_empty}}))
    )
    return redacted(_to_bronze(reader.load()), erased.of_topic(settings, topic))


def read_stream(
    spark: "SparkSession",
    settings: "Settings",
    topic: str,
    starts: Mapping[int, int] | None = None,
    max_offsets: int | None = None,
) -> "DataFrame":
    """The topic as a stream, in bronze's columns. After a restart the query's checkpoint decides where it continues.

    Records that were erased before it started have their position alone.

    Args:
        starts: the offset at which each partition begins; -2 is its first offset. None: all begin at their first offset.
        max_offsets: at most so many in a micro-batch; None: all that are there.
    """
    bound = {} if max_offsets is None else {"maxOffsetsPerTrigger": str(max_offsets)}
    reader = (
        spark.readStream.format("kafka")
        .options(**_options(settings))
        .options(**bound)
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: starts}) if starts else "earliest")
    )
    return redacted(_to_bronze(reader.load()), erased.of_topic(settings, topic))


def _options(settings: "Settings") -> dict[str, str]:
    properties = {f"kafka.{key}": value for key, value in java_properties(settings).items()}
    return properties | {
        "kafka.isolation.level": "read_committed",
        # After each fetch the consumer asks for more in advance. Spark then asks where the partition begins and ends, and the
        # broker answers a connection's requests in order: with Kafka's 500 ms, each read of new records waited for this one.
        "kafka.fetch.max.wait.ms": "10",
        "includeHeaders": "true",
    }


def _to_bronze(records: "DataFrame") -> "DataFrame":
    return records.selectExpr(
        "topic", "partition", "offset", "timestamp", "timestampType AS timestamp_type", "key", "headers", "value"
    )
