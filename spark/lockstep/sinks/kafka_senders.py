"""Senders to a Kafka topic: at most once, at least once and exactly once.

Spark runs a micro-batch again if it was killed before it recorded that the batch was done. What each delivery does about it:

===============  ==========================================================================================================
at_most_once     record the batch id in PostgreSQL, then send the rows; a batch whose id is recorded is not sent again
at_least_once    send the rows and wait for the acknowledgements; a batch that runs again is sent again
exactly_once     write the rows and the batch id in one Kafka transaction; before sending, read the newest batch id back
===============  ==========================================================================================================
"""

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from lockstep.failpoints import failpoint
from lockstep.kafka_clients import confluent_config, is_fenced, latest_by_key, produce
from lockstep.sinks.attempts import first_attempt
from lockstep.sinks.errors import DeliveryFailed, Fenced, InvalidRow
from lockstep.sinks.message import IDEMPOTENCY_KEY, Keyed, Message

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")

# The compacted topic that holds the newest committed batch of each transactional id.
BATCHES = "lockstep-deliveries"
BATCHES_TOPIC = {BATCHES: {"num_partitions": 1, "configs": {"cleanup.policy": "compact"}}}
# How long Kafka may take to acknowledge a batch. After that the batch fails and runs again, so more would only hide an outage.
TIMEOUT_SECONDS = 30.0


class Sender(Protocol):
    """Sends micro-batches to one topic. A sender belongs to one process and one thread."""

    def send(self, rows: Iterable[Message], batch_id: int) -> int:
        """Send the batch; return how many rows were sent now: 0 for a batch that must not be sent again."""


class AtLeastOnce:
    """Waits for Kafka's acknowledgements. A batch that runs again is sent again."""

    def __init__(self, settings: "Settings", name: str, topic: str, generation: int) -> None:
        self.settings, self.name, self.topic, self.generation = settings, name, topic, generation
        self._producer = _open_producer(settings)

    def send(self, rows: Iterable[Message], batch_id: int) -> int:
        """See ``Sender``."""
        failpoint("deliver-before")
        sent, lost = _produce(self._producer, self.topic, rows)
        if lost:
            raise DeliveryFailed(f"{self.name}: {self.topic} did not take {lost} rows of batch {batch_id}")
        failpoint("deliver-sent")
        return sent


class AtMostOnce(AtLeastOnce):
    """Tries each batch once. Rows that Kafka does not take are lost, and the loss is logged."""

    def send(self, rows: Iterable[Message], batch_id: int) -> int:
        """See ``Sender``."""
        if not first_attempt(self.settings, self.name, self.generation, batch_id):
            log.warning("%s: batch %d was tried before, and is not sent again", self.name, batch_id)
            return 0
        try:
            return super().send(rows, batch_id)
        except DeliveryFailed as error:
            log.error("%s; delivery is at_most_once, so these rows are lost", error)
            return 0


class ExactlyOnce:
    """Sends with a fenced transactional producer. The topic ``lockstep-deliveries`` holds the newest committed batch."""

    def __init__(self, settings: "Settings", name: str, topic: str, generation: int) -> None:
        self.settings, self.name, self.topic = settings, name, topic
        self.transactional_id = f"lockstep.{name}.{generation}"
        self._producer: Producer | None = None
        self._last_batch = -1
        self._record: dict[str, Any] = {}

    def send(self, rows: Iterable[Keyed], batch_id: int, **position: Any) -> int:
        """See ``Sender``.

        Args:
            position: what is recorded beside the batch id, for :meth:`last_record`.
        """
        producer = self._open()
        if batch_id <= self._last_batch:
            log.info("%s: batch %d was committed before, and is not sent again", self.name, batch_id)
            return 0
        failpoint("deliver-before")
        try:
            sent = self._commit(producer, rows, batch_id, position)
        except InvalidRow:
            producer.abort_transaction(TIMEOUT_SECONDS)
            raise
        except KafkaException as error:
            with suppress(KafkaException):
                producer.abort_transaction(TIMEOUT_SECONDS)
            # The commit may or may not have arrived. The next attempt opens a new producer, and reads the newest batch back.
            self._producer = None
            raise self._describe(error, batch_id) from error
        self._last_batch = batch_id
        failpoint("deliver-sent")
        return sent

    def last_record(self) -> dict[str, Any]:
        """What is recorded of the newest batch that was committed: ``batch_id``, ``rows``, ``at`` and the position."""
        value = latest_by_key(self.settings, BATCHES).get(self.transactional_id.encode())
        return dict(json.loads(value)) if value else {"batch_id": -1}

    def open(self) -> dict[str, Any]:
        """Fence the sender before this one. What was committed then is final: the newest record."""
        self._producer = None
        self._open()
        return self._record

    def _open(self) -> Producer:
        if self._producer is None:
            transactional = {
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": int(TIMEOUT_SECONDS * 1000),
            }
            producer = _open_producer(self.settings, transactional)
            try:
                # Aborts an open transaction of the previous sender, and fences that sender. Only after that is the newest
                # batch final, and can be read back.
                producer.init_transactions(TIMEOUT_SECONDS)
            except KafkaException as error:
                raise DeliveryFailed(f"{self.name}: Kafka begins no transaction: {error}") from error
            self._record = self.last_record()
            self._last_batch = int(self._record["batch_id"])
            self._producer = producer
        return self._producer

    def _commit(self, producer: Producer, rows: Iterable[Keyed], batch_id: int, position: Mapping[str, Any]) -> int:
        producer.begin_transaction()
        sent, lost = _produce(producer, self.topic, rows)
        if lost:
            raise KafkaException(KafkaError(KafkaError._FAIL, f"{lost} rows were not taken"))
        failpoint("deliver-open")
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        batch = {"batch_id": batch_id, "rows": sent, "at": at, **position}
        producer.produce(BATCHES, key=self.transactional_id, value=json.dumps(batch))
        producer.commit_transaction(TIMEOUT_SECONDS)
        return sent

    def _describe(self, error: KafkaException, batch_id: int) -> Exception:
        if is_fenced(error):
            return Fenced(
                f"{self.name}: another process delivers for it now (transactional id {self.transactional_id}), and this one "
                f"did not send batch {batch_id}. Stop one of the two."
            )
        return DeliveryFailed(f"{self.name}: batch {batch_id} was not committed to {self.topic}: {error}")


def forget(settings: "Settings", name: str) -> None:
    """Forget the batches that a sink has committed exactly once. What it has sent stays."""
    # The id ends with the generation.
    ids = [id for id in latest_by_key(settings, BATCHES) if id.decode().rpartition(".")[0] == f"lockstep.{name}"]
    if not ids:
        return
    producer = _open_producer(settings)
    for id in ids:
        producer.produce(BATCHES, key=id, value=None)
    if left := producer.flush(TIMEOUT_SECONDS):
        raise DeliveryFailed(f"{name}: {BATCHES} did not take {left} tombstones")


def _open_producer(settings: "Settings", more: Mapping[str, Any] | None = None) -> Producer:
    own = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": int(TIMEOUT_SECONDS * 1000), "log_level": 0}
    return Producer(confluent_config(settings) | own | dict(more or {}))


def _produce(producer: Producer, topic: str, rows: Iterable[Keyed]) -> tuple[int, int]:
    """Send the rows and wait; return how many there were, and how many of them were not acknowledged."""
    errors: list[KafkaError] = []
    sent = 0

    def collect_error(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            errors.append(error)

    for row in rows:
        headers: list[tuple[str, str | bytes | None]] = [(IDEMPOTENCY_KEY, row.id)]
        produce(producer, topic, key=row.key, value=row.value, headers=headers, on_delivery=collect_error)
        sent += 1
    return sent, producer.flush(TIMEOUT_SECONDS) + len(errors)
