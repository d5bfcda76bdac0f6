"""Where an interval of time lies in a topic, by the brokers' time index."""

from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from kafka import TopicPartition

from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.kafka_clients import consumer
from lockstep.ledger.ranges import Range

if TYPE_CHECKING:
    from lockstep.settings import Settings


def between(settings: "Settings", topic: str, start: datetime, end: datetime) -> list[Range]:
    """Per partition, from the first record at or after ``start`` to the first at or after ``end`` (timestamps, UTC).

    The index knows the first record that is not older; where a producer sets the time, younger ones may lie before it, and
    older ones after. A topic that does not exist has none.
    """
    bounds = offsets_of_existing_topics(settings, [topic]).get(topic)
    if bounds is None:
        return []
    partitions = {p: TopicPartition(topic, p) for p in bounds.partitions}
    with closing(consumer(settings)) as reader:
        edges = [
            reader.offsets_for_times({tp: int(moment.timestamp() * 1000) for tp in partitions.values()})
            for moment in (start, end)
        ]
    found = []
    for p, tp in sorted(partitions.items()):
        first, last = (edge[tp].offset if edge.get(tp) else bounds.partitions[p][1] for edge in edges)
        found.append(Range(topic, bounds.topic_id, p, first, max(first, last)))
    return found
