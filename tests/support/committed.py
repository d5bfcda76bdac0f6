"""What a topic has for a reader with ``read_committed``."""

from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.ingest.offsets import topic_offsets
from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings


def read_all(settings: Settings, topic: str) -> Iterator[Message]:
    """All committed records, each partition to its end."""
    own = {
        "group.id": "unused",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    with closing(Consumer(confluent_config(settings) | own)) as reader:
        partitions = reader.list_topics(topic, timeout=10).topics[topic].partitions
        reader.assign([TopicPartition(topic, p, 0) for p in partitions])
        open_ones = set(partitions)
        while open_ones:
            message = reader.poll(10)
            assert message is not None, f"{topic} was not read to its end: a transaction is open"
            if message.error() is None:
                yield message
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                open_ones.discard(message.partition())


def until_no_transaction_is_open(settings: Settings, topic: str) -> None:
    """Wait for the markers of transactions that have ended: the broker writes them after it has answered the producer."""

    def is_over() -> bool:
        found = topic_offsets(settings, topic)
        return found.stable_ends == found.ends

    Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.1), retry=retry_if_not_result(bool))(is_over)
