"""Transactions that are open in a topic. Records from the first of them on can be read only when it has ended."""

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kafka import TopicPartition
from kafka.errors import KafkaError

from lockstep.kafka_clients import admin

if TYPE_CHECKING:
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings


def last_writes(settings: "Settings", topics: Iterable["TopicOffsets"]) -> dict[tuple[str, int], datetime]:
    """By topic and partition that has an open transaction, the time (UTC) of the newest record in the oldest one.

    A partition whose producers the broker does not show us is left out. Where nothing is open, the broker is not asked.
    """
    places = [
        TopicPartition(t.topic, p) for t in topics for p, (_, stable) in t.partitions.items() if t.end(p) > stable
    ]
    if not places:
        return {}
    with closing(admin(settings)) as client:
        try:
            described = client.describe_producers(places)
        except KafkaError:
            # It needs the right to read the topics, and status must not fail without it.
            return {}
    found: dict[tuple[str, int], datetime] = {}
    for place, state in described.items():
        writing = [p for p in state.active_producers if p.current_transaction_start_offset >= 0]
        if writing:
            oldest = min(writing, key=lambda p: p.current_transaction_start_offset)
            found[place.topic, place.partition] = datetime.fromtimestamp(oldest.last_timestamp / 1000, UTC)
    return found
