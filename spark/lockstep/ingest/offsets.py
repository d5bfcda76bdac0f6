"""What the broker holds now: the id of a topic, and the first and last stable offset of each partition."""

import time
from contextlib import closing
from typing import TYPE_CHECKING

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from lockstep.errors import LockstepError
from lockstep.kafka_clients import admin, consumer
from lockstep.ledger.ranges import Bounds

if TYPE_CHECKING:
    from lockstep.settings import Settings

_STAMP = "message.timestamp.type"


class TopicMissing(LockstepError):
    """The topic does not exist on the broker."""


def bounds(settings: "Settings", topic: str) -> Bounds:
    """Ask the broker for the topic's id, its partitions, and what each holds for a ``read_committed`` reader.

    Raises:
        TopicMissing: there is no such topic.
    """
    return all_bounds(settings, [topic])[topic]


def all_bounds(settings: "Settings", topics: list[str]) -> dict[str, Bounds]:
    """The same for several topics, over one connection.

    Raises:
        TopicMissing: one of them does not exist.
    """
    found = existing_bounds(settings, topics)
    if missing := [t for t in topics if t not in found]:
        raise TopicMissing(
            f"{settings.kafka} has no topic {', '.join(missing)}. Create it, or start its producer "
            "(`lockstep simulate` makes the shop's topics, Kafka Connect those of PostgreSQL)."
        )
    return found


def existing_bounds(settings: "Settings", topics: list[str]) -> dict[str, Bounds]:
    """The same for those of the topics that exist."""
    with closing(admin(settings)) as client, closing(consumer(settings)) as reader:
        described = {t["name"]: t for t in client.describe_topics(topics) if t["partitions"]}
        resources = [ConfigResource(ConfigResourceType.TOPIC, t) for t in described]
        configs = client.describe_configs(resources, config_filter="all")["topic"] if described else {}
        partitions = [TopicPartition(t, p["partition_index"]) for t, d in described.items() for p in d["partitions"]]
        checked_at = int(time.time() * 1000)
        first, last = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    return {
        name: Bounds(
            topic=name,
            topic_id=str(topic["topic_id"]),
            partitions={tp.partition: (first[tp], last[tp]) for tp in partitions if tp.topic == name},
            stamped_by_broker=configs[name][_STAMP]["value"] == "LogAppendTime",
            checked_at=checked_at,
        )
        for name, topic in described.items()
    }
