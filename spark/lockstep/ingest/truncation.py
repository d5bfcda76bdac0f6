"""Go on after the broker has lost the end of a log, or all of it, by a command that signs for it.

A position never goes back: in every layer, a partition and an offset are one row. So the log is brought up to the ledger.
Where it ends before the ledger, markers fill it. Records that it has at offsets which the ledger took before are produced again
at its end, where both layers read them.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from lockstep import ledger
from lockstep.contracts.contract import HEARTBEAT, PRODUCED_AGAIN
from lockstep.control.leases import lease
from lockstep.definition.tables import bronze_of
from lockstep.errors import LockstepError
from lockstep.ingest.bronze import commit_without_rows
from lockstep.ingest.consumer import read_small
from lockstep.ingest.offsets import topic_offsets
from lockstep.kafka_clients import KafkaUnavailable, confluent_config, produce
from lockstep.lake.writes import SMALL_ROWS
from lockstep.ledger.heads import head
from lockstep.ledger.losses import recreated, truncations
from lockstep.ledger.ranges import Range, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lockstep.contracts import Contract
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings

    Losses = Callable[[Iterable[Range], TopicOffsets], list[Range]]

# Milliseconds. A marker of 1970 moves no watermark; 0 would be the time of now.
_NO_TIME = 1
# As long as a delivery takes at most, by librdkafka's default.
_DELIVERY_SECONDS = 300.0


@dataclass(frozen=True)
class Accepted:
    """What was signed for.

    Args:
        entry: the entry of the ledger; its ``lost`` ranges are rows of bronze that the log has lost.
        produced_again: the number of records that the log had at these offsets, and has at its end now.
    """

    entry: ledger.Entry
    produced_again: int


def accept_truncation(settings: "Settings", contract: "Contract", by: str, reason: str) -> Accepted | None:
    """Accept that the broker lost offsets that bronze has. Their rows stay; what the log has in their place is taken too.

    If it fails, it may run again: records that it produces twice are duplicates, as those of any producer.

    Returns:
        What was signed for, or None if the log has all that the ledger has.

    Raises:
        TopicRecreated, DataLoss: it is another log, not a truncated one.
        KafkaUnavailable: the broker did not take the records. Nothing was signed.
    """
    return _accept(settings, contract, truncations, ledger.SignedFor.TRUNCATION, by, reason)


def accept_recreation(settings: "Settings", contract: "Contract", by: str, reason: str) -> Accepted | None:
    """Accept that the topic was deleted and created again: a log that was truncated to nothing, and has another id.

    Returns:
        What was signed for, or None if it is the same topic.

    Raises:
        DataLoss: the new topic has fewer partitions.
        KafkaUnavailable: the broker did not take the records. Nothing was signed.
    """
    return _accept(settings, contract, recreated, ledger.SignedFor.RECREATION, by, reason)


def _accept(
    settings: "Settings", contract: "Contract", losses: "Losses", kind: ledger.SignedFor, by: str, reason: str
) -> Accepted | None:
    table = bronze_of(contract)
    with lease(settings, table, by) as control:
        newest = ledger.latest(settings, table)
        ledger.check_tip(table, newest, head(control, table))
        if newest is None:
            return None
        log = topic_offsets(settings, contract.topic, newest.epochs)
        lost = losses(newest.ranges, log)
        if not lost:
            return None
        _fill(settings, lost, log)
        count = _produce_again(settings, _in_their_place(settings, lost, log))
        record = ledger.record(
            "ingest",
            newest,
            f"signed by {by}",
            [replace(r, topic_id=log.topic_id) for r in ledger.unchanged_position(newest)],
            epochs=log.epochs,
            signed=ledger.signature(kind, by, reason),
            lost=encode(lost),
        )
        return Accepted(commit_without_rows(control, settings, table, record), count)


def _fill(settings: "Settings", lost: list[Range], log: "TopicOffsets") -> None:
    """Produce markers until each log has reached the end of the ledger."""
    with _Producing(settings) as producer:
        for r in lost:
            for _ in range(log.end(r.partition), r.end):
                producer.send(r.topic, r.partition, headers=[(HEARTBEAT, b"1")], timestamp=_NO_TIME)


def _in_their_place(settings: "Settings", lost: list[Range], log: "TopicOffsets") -> list[Range]:
    """The offsets at which the log has other records than bronze, now that it has been filled."""
    now = topic_offsets(settings, log.topic)
    if (now.topic_id, now.epochs) != (log.topic_id, log.epochs):
        raise LockstepError(
            f"{log.topic}: its leader has changed meanwhile. Nothing was signed: run the command again."
        )
    for r in lost:
        if now.partitions[r.partition][1] < r.end:
            raise LockstepError(
                f"{r.topic}-{r.partition}: a transaction is open before offset {r.end}. Nothing was signed: run the command "
                "again when it has ended, or end it with `lockstep kafka transactions abort`."
            )
    return [replace(r, start=min(max(r.start, now.partitions[r.partition][0]), r.end)) for r in lost]


def _produce_again(settings: "Settings", ranges: list[Range]) -> int:
    """Produce the committed records of the ranges again, as they are, but for heartbeats; how many they are.

    Each says so in a header: a change of a table comes after newer ones then, and its source has not gone back.
    """
    count = 0
    with _Producing(settings) as producer:
        for some in (part for r in ranges for part in _parts(r)):
            for row in read_small(settings, [some]).to_pylist():
                headers = [(h["key"], h["value"]) for h in row["headers"] or ()]
                if HEARTBEAT in dict(headers):
                    continue
                if PRODUCED_AGAIN not in dict(headers):
                    headers.append((PRODUCED_AGAIN, b"1"))
                at = round(row["timestamp"].timestamp() * 1000)
                producer.send(
                    some.topic, some.partition, key=row["key"], value=row["value"], headers=headers, timestamp=at
                )
                count += 1
    return count


def _parts(r: Range) -> "Iterator[Range]":
    """The range in parts that fit into memory."""
    for start in range(r.start, r.end, SMALL_ROWS):
        yield replace(r, start=start, end=min(start + SMALL_ROWS, r.end))


class _Producing:
    """A producer that keeps the order, and whose block ends when the broker has all records.

    Raises:
        KafkaUnavailable: the broker did not take one of them.
    """

    def __init__(self, settings: "Settings") -> None:
        config = confluent_config(settings) | {"acks": "all", "enable.idempotence": True, "log_level": 0}
        self._settings, self._producer = settings, Producer(config)
        self._errors: list[str] = []

    def __enter__(self) -> "_Producing":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        left = self._producer.flush(_DELIVERY_SECONDS)
        if kind is None and (left or self._errors):
            reason = self._errors[0] if self._errors else f"{left} records were not acknowledged"
            raise KafkaUnavailable(
                f"Kafka at {self._settings.kafka} did not take all records ({reason}). Nothing was signed."
            )

    def send(self, topic: str, partition: int, **record: Any) -> None:
        """Hand over one record; waits while the producer's queue is full."""
        produce(self._producer, topic, partition=partition, on_delivery=self._delivered, **record)
        self._producer.poll(0)

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._errors.append(str(error))
