"""Keep time moving in quiet partitions: each one that has had no record for a while gets a heartbeat.

A machine waits until every partition that its job reads has passed an instant, so one quiet partition would stop all of them. A
heartbeat is a record without key and value that both layers leave out. It says that its partition has passed its timestamp.
Heartbeats go on while somebody produces records, and for ten minutes after that, so that the last rows become final too: each
comes after twice as long as the one before, so that nothing lags in between.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from lockstep.contracts.contract import HEARTBEAT
from lockstep.kafka_clients import confluent_config

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
# Milliseconds. A record that is under way may be this much older than the heartbeat before it. The queries allow two seconds.
_BEHIND = 1_000
# How long heartbeats go on after the last record of somebody else (milliseconds).
_OPEN = 600_000
_ANSWER_SECONDS = 10.0

Place = tuple[str, int]


@dataclass(frozen=True)
class Newest:
    """The newest record of a partition: its timestamp (milliseconds, UTC) and offset; both are -1 where there is none."""

    at: int
    offset: int


def newest_of_others(newest: Mapping[Place, Newest], own: Mapping[Place, int], before: int) -> int:
    """When the newest record was produced that is no heartbeat of ours (milliseconds). Pure.

    Args:
        own: by partition, the offset of the last heartbeat.
        before: what it was at the last look; -1: there was none.
    """
    return max([before, *(n.at for place, n in newest.items() if own.get(place) != n.offset)])


def quiet(newest: Mapping[Place, Newest], others: int, now: int, after: int) -> list[Place]:
    """The partitions that need a heartbeat. Pure.

    Args:
        others: when the newest record was produced that is no heartbeat of ours.
        now: milliseconds since the epoch.
        after: milliseconds without a record, while there are others. After the last one, as long as it was ago at a partition's
            last heartbeat.
    """
    if now - others >= _OPEN:
        return []
    return sorted(place for place, n in newest.items() if now - n.at > max(after, n.at - others))


@dataclass
class QuietPartitions:
    """Sends heartbeats to the quiet partitions of some topics, from a thread of its own.

    Args:
        own: by partition, the offset of the last heartbeat.
        others: when the newest record was produced that is no heartbeat of ours (milliseconds).
    """

    settings: "Settings"
    topics: Iterable[str]
    own: dict[Place, int] = field(default_factory=dict)
    others: int = -1

    def run(self, stopping: threading.Event) -> None:
        """Look once a second, until ``stopping`` is set. A broker that does not answer is asked again."""
        config = confluent_config(self.settings) | {"log_level": 0}
        admin, producer = AdminClient(config), Producer(config | {"acks": "all"})
        while not stopping.wait(1):
            try:
                self._look(admin, producer)
            except KafkaException as error:
                log.warning("no heartbeats were sent to quiet partitions: %s", error)
        producer.flush(_ANSWER_SECONDS)

    def _look(self, admin: AdminClient, producer: Producer) -> None:
        newest = self._newest(admin)
        now = time.time_ns() // 1_000_000
        self.others = newest_of_others(newest, self.own, self.others)
        for topic, partition in quiet(newest, self.others, now, self.settings.heartbeat_seconds * 1000):
            producer.produce(
                topic,
                partition=partition,
                headers=[(HEARTBEAT, b"1")],
                timestamp=now - _BEHIND,
                on_delivery=self._delivered,
            )
        producer.flush(_ANSWER_SECONDS)

    def _newest(self, admin: AdminClient) -> dict[Place, Newest]:
        described = admin.list_topics(timeout=_ANSWER_SECONDS).topics
        places = [(t, p) for t in self.topics if t in described for p in described[t].partitions]
        newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, partition): newest for topic, partition in places}
        answers = admin.list_offsets(asked, request_timeout=_ANSWER_SECONDS) if asked else {}
        results = {place: answer.result() for place, answer in answers.items()}
        return {(p.topic, p.partition): Newest(found.timestamp, found.offset) for p, found in results.items()}

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            log.warning("a heartbeat was not taken: %s", error)
        else:
            self.own[str(message.topic()), int(message.partition() or 0)] = int(message.offset() or 0)
