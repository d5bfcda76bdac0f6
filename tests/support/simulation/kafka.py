"""A log as Kafka has it: partitions, transactions with a last stable offset, holes in the offsets, and retention."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lockstep.ledger.ranges import TopicOffsets

Place = tuple[str, int]


class Form(Enum):
    """What a record is by its form."""

    DATA = "data"
    BROKEN = "broken"
    HEARTBEAT = "heartbeat"
    CONTROL = "control"


@dataclass
class Record:
    """One offset of a partition.

    Args:
        timestamp: Kafka's, milliseconds.
        visible: None while its transaction is open; then whether a ``read_committed`` reader gets it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    form: Form
    value: Any = None
    visible: bool | None = True


@dataclass
class Transaction:
    """An open transaction of a producer."""

    records: list[Record] = field(default_factory=list)


class Kafka:
    """All topics."""

    def __init__(self, partitions: dict[str, int]) -> None:
        self.log: dict[Place, list[Record]] = {(t, p): [] for t, n in partitions.items() for p in range(n)}
        self.first: dict[Place, int] = dict.fromkeys(self.log, 0)
        # Of each leader epoch of a partition, the offset at which it began.
        self.epochs: dict[Place, list[int]] = {place: [0] for place in self.log}
        # Partitions that were added after the topic was made.
        self.added: set[Place] = set()

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        return sorted(p for t, p in self.log if t == topic)

    def add_partition(self, topic: str) -> Place:
        """Add one to a topic."""
        place = (topic, len(self.partitions(topic)))
        self.log[place], self.first[place], self.epochs[place] = [], 0, [0]
        self.added.add(place)
        return place

    def elect(self, place: Place) -> None:
        """The partition gets another leader, which has the whole log."""
        self.epochs[place].append(len(self.log[place]))

    def append(
        self, place: Place, timestamp: int, form: Form, value: Any = None, transaction: Transaction | None = None
    ) -> Record:
        """Append a record."""
        topic, partition = place
        record = Record(topic, partition, len(self.log[place]), timestamp, form, value, None if transaction else True)
        self.log[place].append(record)
        if transaction:
            transaction.records.append(record)
        return record

    def end(self, transaction: Transaction, commit: bool, timestamp: int) -> None:
        """Commit or abort a transaction: a control record in each of its partitions."""
        for record in transaction.records:
            record.visible = commit
        for place in sorted({(r.topic, r.partition) for r in transaction.records}):
            self.append(place, timestamp, Form.CONTROL).visible = False
        transaction.records = []

    def last_stable(self, place: Place) -> int:
        """The offset of the first record of an open transaction, or the log's end."""
        log = self.log[place]
        return next((r.offset for r in log[self.first[place] :] if r.visible is None), len(log))

    def offsets(self, topic: str, epochs: Mapping[int, int] | None = None) -> TopicOffsets:
        """As :func:`lockstep.ingest.offsets.topic_offsets` asks for them.

        Args:
            epochs: per partition, the leader epoch in which it was read.
        """
        places = {p: (topic, p) for p in self.partitions(topic)}
        now = {p: len(self.epochs[at]) - 1 for p, at in places.items()}
        asked = {p: epoch for p, epoch in (epochs or {}).items() if epoch != now[p]}
        return TopicOffsets(
            topic,
            f"id-{topic}",
            {p: (self.first[at], self.last_stable(at)) for p, at in places.items()},
            ends={p: len(self.log[at]) for p, at in places.items()},
            epochs=now,
            unchanged_to={p: self.epochs[places[p]][epoch + 1] for p, epoch in asked.items()},
        )

    def read(self, place: Place, start: int, end: int) -> Iterator[Record]:
        """The committed records of a range."""
        return (r for r in self.log[place][start:end] if r.visible)

    def newest_timestamp(self, topic: str) -> int:
        """The newest timestamp in a topic; 0: it has no record."""
        return max((r.timestamp for (t, _), log in self.log.items() if t == topic for r in log), default=0)
