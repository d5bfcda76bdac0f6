"""Senders: they send records, and return what the broker acknowledged.

Both clients are idempotent, wait for all replicas, and put a key on the partition that the Java clients choose (murmur2).
kafka-python is the default. librdkafka (``--bulk``) is faster.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import confluent_kafka
from kafka.errors import KafkaError

from lockstep.contracts import CONTRACTS
from lockstep.errors import LockstepError
from lockstep.kafka_clients import confluent_config, producer
from lockstep.settings import Settings
from shop.simulate.disturb import Record

HEARTBEAT_HEADER = ("lockstep-heartbeat", b"1")
# Long enough for the supervisor to restart a killed broker.
_DELIVERY_SECONDS = 60


class NotAcknowledged(LockstepError):
    """The broker did not acknowledge a record."""


class Acknowledged(NamedTuple):
    """A record that the broker has, with its partition and offset. ``arrival`` is its timestamp in milliseconds, UTC."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    arrival: int
    is_heartbeat: bool


class Sender(Protocol):
    """Sends records in order, and waits for their acknowledgement."""

    def send(self, records: Sequence[Record]) -> list[Acknowledged]:
        """Send all records, wait until the broker has them, and return where each one is, in the given order.

        Raises:
            NotAcknowledged: the broker refused a record, or did not answer in time. Others may have been written.
        """

    def close(self) -> None:
        """Close the connection."""


class KafkaPythonSender:
    """kafka-python: some thousand records a second."""

    def __init__(self, settings: Settings) -> None:
        limits = {"linger_ms": 5, "batch_size": 128 * 1024, "delivery_timeout_ms": _DELIVERY_SECONDS * 1000}
        self._producer = producer(settings, **limits)

    def send(self, records: Sequence[Record]) -> list[Acknowledged]:
        """See ``Sender``."""
        try:
            pending = [
                self._producer.send(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=_headers(record),
                    partition=record.partition,
                    timestamp_ms=record.arrival,
                )
                for record in records
            ]
            self._producer.flush(timeout=_DELIVERY_SECONDS)
            places = [future.get(timeout=_DELIVERY_SECONDS) for future in pending]
        except KafkaError as error:
            raise _refused(error) from error
        return [
            _acknowledged(record, place.partition, place.offset) for record, place in zip(records, places, strict=True)
        ]

    def close(self) -> None:
        """See ``Sender``."""
        self._producer.close(timeout=_DELIVERY_SECONDS)


class BulkSender:
    """librdkafka: as fast as the records are made."""

    def __init__(self, settings: Settings) -> None:
        limits = {
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
            "message.timeout.ms": _DELIVERY_SECONDS * 1000,
        }
        # Its own log is switched off: an error is either overcome by its retries, or raised.
        own = {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random", "log_level": 0}
        self._producer = confluent_kafka.Producer(confluent_config(settings) | own | limits)

    def send(self, records: Sequence[Record]) -> list[Acknowledged]:
        """See ``Sender``."""
        places: list[tuple[int, int]] = [(-1, -1)] * len(records)
        errors: list[confluent_kafka.KafkaError] = []
        for number, record in enumerate(records):
            self._produce(record, _delivered(places, number, errors))
        waiting = self._producer.flush(_DELIVERY_SECONDS)
        if errors or waiting:
            raise _refused(errors[0] if errors else f"{waiting} records still wait after {_DELIVERY_SECONDS} s")
        return [_acknowledged(record, *place) for record, place in zip(records, places, strict=True)]

    def _produce(self, record: Record, delivered: Callable[..., None]) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=_headers(record),
                    timestamp=record.arrival,
                    on_delivery=delivered,
                    partition=-1 if record.partition is None else record.partition,
                )
            except BufferError:
                self._producer.poll(0.1)
            except confluent_kafka.KafkaException as error:
                raise _refused(error) from error
            else:
                return

    def close(self) -> None:
        """See ``Sender``."""
        self._producer.flush(_DELIVERY_SECONDS)


def heartbeats(topics: Iterable[str], at: int) -> list[Record]:
    """One heartbeat per partition of the contracts' topics. It means: this partition's log has passed ``at``."""
    partitions = {contract.topic: contract.partitions for contract in CONTRACTS.values()}
    return [Record(topic, None, None, at, partition) for topic in topics for partition in range(partitions[topic])]


def _headers(record: Record) -> list[tuple[str, str | bytes | None]]:
    return [HEARTBEAT_HEADER] if record.key is None else []


def _acknowledged(record: Record, partition: int, offset: int) -> Acknowledged:
    return Acknowledged(record.topic, partition, offset, record.key, record.value, record.arrival, record.key is None)


def _delivered(
    places: list[tuple[int, int]], number: int, errors: list[confluent_kafka.KafkaError]
) -> Callable[..., None]:
    def callback(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            places[number] = (message.partition() or 0, message.offset() or 0)

    return callback


def _refused(reason: object) -> NotAcknowledged:
    return NotAcknowledged(
        f"Kafka did not acknowledge the simulator's records ({reason}); see `lockstep status`, then run "
        "`lockstep simulate` again: it goes on where it stopped"
    )
