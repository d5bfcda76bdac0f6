"""What the broker has now: the id of a topic, and the first and the last stable offset of each partition."""

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import TopicPartition

from lockstep.errors import LockstepError
from lockstep.kafka_clients import admin, consumer
from lockstep.ledger.ranges import TopicOffsets

if TYPE_CHECKING:
    from lockstep.settings import Settings


class TopicMissing(LockstepError):
    """The topic does not exist on the broker."""


def topic_offsets(settings: "Settings", topic: str) -> TopicOffsets:
    """Ask the broker for the topic's id, and for the offsets that a ``read_committed`` reader finds in each partition.

    Raises:
        TopicMissing: there is no such topic.
    """
    return offsets_of_topics(settings, [topic])[topic]


def offsets_of_topics(settings: "Settings", topics: list[str]) -> dict[str, TopicOffsets]:
    """The offsets of several topics by name, over one connection.

    Raises:
        TopicMissing: one of them does not exist.
    """
    offsets = offsets_of_existing_topics(settings, topics)
    if missing := [t for t in topics if t not in offsets]:
        raise TopicMissing(
            f"{settings.kafka} has no topic {', '.join(missing)}. Create it with `lockstep up kafka`, which makes the topics of "
            "all contracts."
        )
    return offsets


def offsets_of_existing_topics(settings: "Settings", topics: list[str]) -> dict[str, TopicOffsets]:
    """The offsets by name of those of the topics that exist."""
    if not topics:
        # The admin client takes no names for all names.
        return {}
    with closing(admin(settings)) as client, closing(consumer(settings)) as reader:
        described = {t["name"]: t for t in client.describe_topics(topics) if t["partitions"]}
        partitions = [TopicPartition(t, p["partition_index"]) for t, d in described.items() for p in d["partitions"]]
        first, last = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    return {
        name: TopicOffsets(
            topic=name,
            topic_id=str(topic["topic_id"]),
            partitions={tp.partition: (first[tp], last[tp]) for tp in partitions if tp.topic == name},
        )
        for name, topic in described.items()
    }
