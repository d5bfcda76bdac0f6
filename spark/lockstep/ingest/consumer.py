"""Read a small slice of the log without Spark: exact ranges, as bronze has them, in some tens of milliseconds.

Spark's Kafka source makes a consumer for each partition and read, and waits for each of them longer than a small read takes.
"""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep.control import erased
from lockstep.errors import DataLoss, TopicForbidden
from lockstep.ingest.redaction import redacted_few
from lockstep.kafka_clients import KafkaUnavailable, confluent_config

if TYPE_CHECKING:
    from lockstep.ledger.ranges import Range
    from lockstep.settings import Settings

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("value", pa.binary()),
    ]
)
# A read that brings nothing for so long has failed: a broker that was killed is back sooner.
_SILENCE_SECONDS = 60.0
# librdkafka counts the types of timestamps from 1; Kafka, and so Spark, from 0.
_TYPES_FROM = 1


def read_small(settings: "Settings", ranges: "list[Range]") -> pa.Table:
    """The committed records of the ranges, and no others, in bronze's columns. Those that were erased have their position alone.

    Args:
        ranges: at most one for each partition.

    Raises:
        DataLoss: a range begins before the log does.
        TopicForbidden: the account may not read the topic.
        KafkaUnavailable: the broker did not send everything.
    """
    config = confluent_config(settings) | {
        "group.id": "lockstep-ingest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        # The end of a partition is an event: after the last record there may be markers of transactions, which are not.
        "enable.partition.eof": True,
        # How long the broker waits for more at the end of a partition.
        "fetch.wait.max.ms": 20,
        # Errors are raised here; the client's own log would repeat them.
        "log_level": 0,
    }
    waiting = {(r.topic, r.partition): r for r in ranges if r.size}
    rows: list[dict[str, Any]] = []
    with closing(Consumer(config)) as consumer:
        consumer.assign([TopicPartition(r.topic, r.partition, r.start) for r in waiting.values()])
        while waiting:
            message = consumer.poll(_SILENCE_SECONDS)
            if message is None:
                raise _unavailable(settings, waiting, f"no record in {_SILENCE_SECONDS:.0f} s")
            _take(settings, message, waiting, rows)
    return redacted_few(pa.Table.from_pylist(rows, SCHEMA), erased.of_topics(settings, {r.topic for r in ranges}))


def _take(
    settings: "Settings", message: Message, waiting: "dict[tuple[str, int], Range]", rows: list[dict[str, Any]]
) -> None:
    """Keep the record if it is of a range, and end the range that it ends."""
    place = str(message.topic()), int(message.partition() or 0)
    error, wanted = message.error(), waiting.get(place)
    if wanted is None:
        # Its range is complete, or the error is of no partition, and the client tries again by itself.
        return
    if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise DataLoss(
            f"{wanted.topic}-{wanted.partition}: offset {wanted.start} is gone from the log before it was read."
        )
    if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise TopicForbidden(settings.kafka, wanted.topic, "read", "READ")
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise _unavailable(settings, waiting, str(error)) from KafkaException(error)
    offset = message.offset() or 0
    if error is None and offset < wanted.end:
        rows.append(_row(message))
    # The end of the log has the offset of the next record.
    if offset + (error is None) >= wanted.end:
        del waiting[place]


def _row(message: Message) -> dict[str, Any]:
    kind, at = message.timestamp()
    headers = [{"key": header[0], "value": header[1]} for header in message.headers() or []]
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": at * 1000,
        "timestamp_type": kind - _TYPES_FROM,
        "key": message.key(),
        # As Spark has it: none is null.
        "headers": headers or None,
        "value": message.value(),
    }


def _unavailable(settings: "Settings", waiting: "dict[tuple[str, int], Range]", reason: str) -> KafkaUnavailable:
    missing = ", ".join(f"{r.topic}-{r.partition} up to {r.end}" for r in waiting.values())
    return KafkaUnavailable(
        f"Kafka at {settings.kafka} did not send all of {missing} ({reason}). Nothing was written. See `lockstep logs kafka`."
    )
