"""The topics of an aggregate, and how they are read: committed records only, to the end that the log has now."""

import time
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.errors import LogUnreadable, TopicsDiffer
from lockstep.commands.records import Record
from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import KEEP_ALL, configs, confluent_config, create_topics

if TYPE_CHECKING:
    from lockstep.settings import Settings

_TIMEOUT_SECONDS = 30.0
# Longer than the transaction timeout of a processor: the broker has ended each of their transactions by then.
_OPEN_TRANSACTION_SECONDS = 90
_BATCH = 1_000
_WITHOUT_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_FETCH_MS = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A command's time is when the broker took it: senders' clocks do not decide what comes first.
_CONFIGS = {
    "commands": KEEP_ALL | {"message.timestamp.type": "LogAppendTime"},
    "events": KEEP_ALL,
    "outcomes": KEEP_ALL,
    "snapshots": {"cleanup.policy": "compact"},
}


def ensure(settings: "Settings", aggregate: Aggregate[Any, Any, Any]) -> None:
    """Create the aggregate's topics that are missing.

    The topic of a stream has the settings that its contract gives it, whoever is the first to create it.

    Raises:
        TopicsDiffer: one has another number of partitions than the aggregate, so that keys would be in other partitions.
    """
    of_streams = {contract.topic: configs(contract) for contract in CONTRACTS.values()}
    names = {aggregate.topic(part): own for part, own in _CONFIGS.items()} | {
        topic: of_streams[topic] for topic in map(aggregate.topic, _CONFIGS) if topic in of_streams
    }
    create_topics(settings, {n: {"num_partitions": aggregate.partitions, "configs": c} for n, c in names.items()})
    with closing(_consumer(settings)) as reader:
        topics = reader.list_topics(timeout=_TIMEOUT_SECONDS).topics
    found = {name: len(topics[name].partitions) for name in names if name in topics}
    if others := {name: count for name, count in found.items() if count != aggregate.partitions}:
        raise TopicsDiffer(
            f"{aggregate.name} declares {aggregate.partitions} partitions, and there are other numbers: {others}. Declare what "
            "the topics have. More partitions would move keys away from their history: a new number needs new topics."
        )


def reader(settings: "Settings", topic: str, partition: int, start: int, **own: Any) -> Consumer:
    """A consumer of committed records of one partition, from an offset on; with more properties of librdkafka."""
    consumer = _consumer(settings, **{"isolation.level": "read_committed"} | own)
    consumer.assign([TopicPartition(topic, partition, start or OFFSET_BEGINNING)])
    return consumer


def end_of(settings: "Settings", topic: str, partition: int) -> int:
    """The offset that the next record of a partition will have, uncommitted ones included.

    Raises:
        LogUnreadable: there is no such partition, or no broker answers.
    """
    with closing(_consumer(settings)) as consumer:
        try:
            return _end_once_there_is_a_leader(consumer, TopicPartition(topic, partition))
        except KafkaException as error:
            raise LogUnreadable(
                f"{topic}-{partition} cannot be read: {error.args[0].str()}. `lockstep commands run` makes the topics; see "
                "`lockstep status` for the broker."
            ) from error


# A partition that was just created, or whose broker has died, has no leader for a moment; librdkafka does not ask again.
@retry(
    stop=stop_after_delay(_TIMEOUT_SECONDS),
    wait=wait_fixed(0.2),
    retry=retry_if_exception(
        lambda error: isinstance(error, KafkaException) and error.args[0].code() in _WITHOUT_LEADER
    ),
    reraise=True,
)
def _end_once_there_is_a_leader(consumer: Consumer, partition: TopicPartition) -> int:
    return int(consumer.get_watermark_offsets(partition, _TIMEOUT_SECONDS)[1])


def committed(settings: "Settings", topic: str, partition: int, start: int = 0) -> Generator[Record]:
    """The committed records of a partition, from an offset up to the end that the log has at the call.

    It waits for transactions that are open before that end, so it misses nothing that was committed before the call.

    Raises:
        LogUnreadable: a transaction stays open, or the log does not have the offset any more.
    """
    end = end_of(settings, topic, partition)
    deadline = time.monotonic() + _OPEN_TRANSACTION_SECONDS
    if start >= end:
        return
    # The broker lets a fetch at the end of the log wait, and only after it says that this was the end.
    own = {"enable.partition.eof": True, "fetch.wait.max.ms": _FETCH_MS}
    with closing(reader(settings, topic, partition, start, **own)) as consumer:
        while True:
            for message in consumer.consume(_BATCH, timeout=0.05):
                error = message.error()
                if error is None:
                    yield record_of(message)
                    # As long as records come, no transaction holds the reader up.
                    deadline = time.monotonic() + _OPEN_TRANSACTION_SECONDS
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise LogUnreadable(f"{topic}-{partition} cannot be read from offset {start} on: {error.str()}")
                elif (message.offset() or 0) >= end:
                    return
            if time.monotonic() > deadline:
                raise LogUnreadable(
                    f"{topic}-{partition} could not be read to its end within {_OPEN_TRANSACTION_SECONDS} s: a transaction is "
                    "open in it. See `lockstep kafka transactions find-hanging`, then try again."
                )


def admin(settings: "Settings") -> AdminClient:
    """Who asks :func:`newest_time`. Hold it as long as the answer is awaited."""
    return AdminClient(confluent_config(settings) | {"log_level": 0})


def newest_time(client: AdminClient, topic: str, partition: int) -> datetime | None:
    """The newest Kafka timestamp of a partition (UTC), of heartbeats too; None: it has no record."""
    place = TopicPartition(topic, partition)
    newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
    asked = client.list_offsets({place: newest})
    found = asked[place].result(_TIMEOUT_SECONDS)
    return _time(found.timestamp) if found.offset >= 0 else None


def first_since(settings: "Settings", topic: str, partition: int, since: datetime) -> int:
    """The offset of the first record that is not older than a time; the log's end, if all are."""
    with closing(_consumer(settings)) as consumer:
        asked = TopicPartition(topic, partition, milliseconds(since))
        (found,) = consumer.offsets_for_times([asked], _TIMEOUT_SECONDS)
    return int(found.offset) if found.offset >= 0 else end_of(settings, topic, partition)


def record_of(message: Message) -> Record:
    """The record that a consumer has read."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None, "it was read"  # noqa: S101
    at = _time(message.timestamp()[1])
    headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
    return Record(message.topic() or "", partition, offset, message.key() or b"", message.value() or b"", at, headers)


def milliseconds(at: datetime) -> int:
    """A time as Kafka has it: ms since 1970."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _time(at: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at)


def _consumer(settings: "Settings", **more: Any) -> Consumer:
    own = {
        "group.id": "lockstep.commands",
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",
        # An offset that is gone is an error, and never skipped.
        "auto.offset.reset": "error",
        "log_level": 0,
    }
    return Consumer(confluent_config(settings) | own | more)
