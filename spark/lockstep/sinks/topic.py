"""Rows into a topic, at most once, at least once or exactly once.

Spark runs a micro-batch again when it was killed before it wrote down that the batch was done. What each delivery does about it:

===============  ==========================================================================================================
at_most_once     the batch's id is written to PostgreSQL, then the rows are sent; a batch that is written there is not sent again
at_least_once    the rows are sent and acknowledged before the batch is; a batch that runs again is sent again
exactly_once     one Kafka transaction holds the rows and the batch's id, which is read back before anything is sent
===============  ==========================================================================================================
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from lockstep import settings
from lockstep.definition.alerting import Delivery
from lockstep.failpoints import failpoint
from lockstep.kafka_clients import KEEP_ALL, confluent_config, create_topics, latest_by_key
from lockstep.sinks.attempts import first_attempt
from lockstep.sinks.errors import DeliveryFailed, Fenced
from lockstep.sinks.sink import IDEMPOTENCY_KEY, Message, TopicSink, messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")

BATCHES = "lockstep-deliveries"
SECONDS = 30.0
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class Sender(Protocol):
    """One of the three ways. A sender belongs to one process and thread."""

    def send(self, rows: list[Message], batch_id: int) -> int:
        """Send the batch; returns how many rows were sent now, 0 for a batch that is not to be sent again."""


class ToTopic:
    """The sink of a live query (``foreachBatch``) or of a batch job, whose batch ids rise.

    It is pickled to the Spark server, so it holds names only, and reads the settings where it runs.

    Args:
        generation: of the query's checkpoint; the batch ids of a new generation start anew.
    """

    def __init__(self, sink: TopicSink, generation: int = 1) -> None:
        self.sink, self.generation = sink, generation
        self._sender: Sender | None = None

    def __call__(self, rows: "DataFrame | Iterable[Mapping[str, Any]]", batch_id: int) -> int:
        """Send the rows of a micro-batch; returns how many were sent by this call.

        Raises:
            RowRefused: a row has no ``alert_id``; nothing was sent.
            DeliveryFailed: Kafka did not take everything; run the batch again (``at_most_once`` tells the loss instead).
            Fenced: another process delivers for this sink.
        """
        batch = list(messages(rows, self.sink.name, self.sink.key))
        if not batch:
            return 0
        if self._sender is None:
            self._sender = sender(settings.load(), self.sink, self.generation)
        return self._sender.send(batch, batch_id)


def sender(config: "Settings", sink: TopicSink, generation: int) -> Sender:
    """The sender that the sink's declaration asks for; its topics exist afterwards."""
    create_topics(
        config,
        {
            sink.topic: {"num_partitions": sink.partitions, "configs": KEEP_ALL},
            BATCHES: {"num_partitions": 1, "configs": {"cleanup.policy": "compact"}},
        },
    )
    ways: dict[Delivery, Callable[[Settings, TopicSink, int], Sender]] = {
        Delivery.AT_MOST_ONCE: AtMostOnce,
        Delivery.AT_LEAST_ONCE: AtLeastOnce,
        Delivery.EXACTLY_ONCE: ExactlyOnce,
    }
    return ways[sink.delivery](config, sink, generation)


class AtLeastOnce:
    """Acknowledged by Kafka before the batch is, and sent again when the batch runs again."""

    def __init__(self, config: "Settings", sink: TopicSink, generation: int) -> None:
        self.config, self.sink, self.generation = config, sink, generation
        self._producer = _producer(config)

    def send(self, rows: list[Message], batch_id: int) -> int:
        failpoint("deliver-before")
        lost = _produce(self._producer, self.sink.topic, rows)
        if lost:
            raise DeliveryFailed(f"{self.sink.name}: {lost} of batch {batch_id} were not taken by {self.sink.topic}")
        failpoint("deliver-sent")
        return len(rows)


class AtMostOnce(AtLeastOnce):
    """Tried once: what Kafka does not take is lost, and told."""

    def send(self, rows: list[Message], batch_id: int) -> int:
        if not first_attempt(self.config, self.sink.name, self.generation, batch_id):
            log.warning("%s: batch %d was tried before, and is not sent again", self.sink.name, batch_id)
            return 0
        try:
            return super().send(rows, batch_id)
        except DeliveryFailed as error:
            log.error("%s; at_most_once: they are lost", error)
            return 0


class ExactlyOnce:
    """One fenced transactional producer; the newest batch id lies in the compacted topic ``lockstep-deliveries``."""

    def __init__(self, config: "Settings", sink: TopicSink, generation: int) -> None:
        self.config, self.sink = config, sink
        self.identity = f"lockstep.{sink.name}.{generation}"
        self._producer: Producer | None = None
        self._last = -1

    def send(self, rows: list[Message], batch_id: int) -> int:
        producer = self._open()
        if batch_id <= self._last:
            log.info("%s: batch %d was committed before, and is not sent again", self.sink.name, batch_id)
            return 0
        failpoint("deliver-before")
        try:
            self._commit(producer, rows, batch_id)
        except KafkaException as error:
            with suppress(KafkaException):
                producer.abort_transaction(SECONDS)
            # Whether the commit arrived is not known: the next attempt opens a producer of its own and reads it back.
            self._producer = None
            raise self._refusal(error, batch_id) from error
        self._last = batch_id
        failpoint("deliver-sent")
        return len(rows)

    def _open(self) -> Producer:
        if self._producer is None:
            producer = _producer(
                self.config, {"transactional.id": self.identity, "transaction.timeout.ms": int(SECONDS * 1000)}
            )
            try:
                # Ends what a predecessor left open, and shuts it out; only then does reading back tell the last word.
                producer.init_transactions(SECONDS)
            except KafkaException as error:
                raise DeliveryFailed(f"{self.sink.name}: Kafka begins no transaction: {error}") from error
            self._last = self.last_committed()
            self._producer = producer
        return self._producer

    def last_committed(self) -> int:
        """The newest batch that was committed, -1 before the first."""
        value = latest_by_key(self.config, BATCHES).get(self.identity.encode())
        return int(json.loads(value)["batch_id"]) if value else -1

    def _commit(self, producer: Producer, rows: list[Message], batch_id: int) -> None:
        producer.begin_transaction()
        lost = _produce(producer, self.sink.topic, rows)
        if lost:
            raise KafkaException(KafkaError(KafkaError._FAIL, f"{lost} were not taken"))
        failpoint("deliver-open")
        told = {"batch_id": batch_id, "rows": len(rows), "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        producer.produce(BATCHES, key=self.identity, value=json.dumps(told))
        producer.commit_transaction(SECONDS)

    def _refusal(self, error: KafkaException, batch_id: int) -> Exception:
        if error.args[0].code() in _FENCED:
            return Fenced(
                f"{self.sink.name}: another process delivers for it since (transactional id {self.identity}); batch "
                f"{batch_id} was not sent by this one. Stop one of the two."
            )
        return DeliveryFailed(f"{self.sink.name}: batch {batch_id} was not committed to {self.sink.topic}: {error}")


def _producer(config: "Settings", more: Mapping[str, Any] | None = None) -> Producer:
    own = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": int(SECONDS * 1000), "log_level": 0}
    return Producer(confluent_config(config) | own | dict(more or {}))


def _produce(producer: Producer, topic: str, rows: list[Message]) -> int:
    """Send the rows and wait; returns how many were not acknowledged."""
    refused: list[KafkaError] = []

    def told(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error)

    for row in rows:
        headers: list[tuple[str, str | bytes | None]] = [(IDEMPOTENCY_KEY, row.id)]
        while True:
            try:
                producer.produce(topic, key=row.key, value=row.value, headers=headers, on_delivery=told)
                break
            except BufferError:
                # The queue is full: wait until some are acknowledged.
                producer.poll(1)
    return producer.flush(SECONDS) + len(refused)
