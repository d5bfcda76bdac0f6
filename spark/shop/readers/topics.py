"""Topics that exist only for a demonstration."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from lockstep.kafka_clients import KEEP_ALL, admin, confluent_config, create_topics
from shop.readers.child_processes import DemonstrationFailed

if TYPE_CHECKING:
    from lockstep.settings import Settings


@contextmanager
def own_topic(settings: "Settings", partitions: int, configs: Mapping[str, str] = KEEP_ALL) -> Iterator[str]:
    """The name of a topic that exists only inside the block."""
    name = f"readers-{uuid.uuid4().hex[:8]}"
    create_topics(settings, {name: {"num_partitions": partitions, "configs": dict(configs)}})
    try:
        yield name
    finally:
        with closing(admin(settings)) as client:
            client.delete_topics([name])


def send(
    settings: "Settings", topic: str, partitions: int, events: Iterable[Mapping[str, Any]], one_by_one: bool = False
) -> int:
    """Send events with a ``user_id``. The partition is the user modulo the partitions, so that a user's events stay in order.

    Args:
        one_by_one: send each event in a batch of its own, because a share group hands out whole batches.

    Returns:
        how many were acknowledged.

    Raises:
        DemonstrationFailed: some were not.
    """
    own = {"acks": "all", "enable.idempotence": True, "log_level": 0} | (
        {"batch.num.messages": 1} if one_by_one else {}
    )
    producer = Producer(confluent_config(settings) | own)
    sent = 0
    for event in events:
        user = int(event["user_id"])
        producer.produce(topic, key=str(user), value=json.dumps(dict(event)), partition=user % partitions)
        sent += 1
    if left := producer.flush(30):
        raise DemonstrationFailed(f"{left} of {sent} events were not taken by {settings.kafka} within 30 s")
    return sent
