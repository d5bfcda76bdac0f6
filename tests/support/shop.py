"""A producer of page views for tests, which remembers what the broker acknowledged."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from lockstep.contracts import Contract
from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings

# In the past: the broker refuses timestamps that are more than an hour ahead of its clock.
START = datetime(2026, 11, 10, 10, tzinfo=UTC)


class Shop:
    """Sends page views to the test's topic, and remembers what the broker acknowledged."""

    def __init__(self, settings: Settings, contract: Contract) -> None:
        self.contract = contract
        self._producer = Producer(
            confluent_config(settings) | {"acks": "all", "enable.idempotence": True, "log_level": 0}
        )
        self.acknowledged: list[tuple[int, int]] = []

    def view(self, event_id: str, second: float, arrives_after: float = 0.5, **fields: Any) -> None:
        """A page view at START + ``second``, which arrives some seconds later."""
        event = {
            "event_id": event_id,
            "event_time": (START + timedelta(seconds=second)).isoformat(),
            "user_id": "u1",
            "session_id": "s1",
            "page": "/",
        } | fields
        self.raw(json.dumps(event).encode(), second + arrives_after, event["user_id"])

    def raw(self, value: bytes | None, arrives_at: float, key: str = "u1", **more: Any) -> None:
        """Any bytes, arriving at START + ``arrives_at`` seconds; ``more`` may say which partition."""
        self._send(value, key.encode(), arrives_at, **more)

    def heartbeat(self, second: float) -> None:
        """Every partition's log has passed START + ``second``."""
        for partition in range(self.contract.partitions):
            self._send(None, None, second, partition=partition, headers=[("lockstep-heartbeat", b"1")])

    def flush(self) -> None:
        """Wait until the broker has acknowledged everything."""
        assert self._producer.flush(30) == 0

    def _send(self, value: bytes | None, key: bytes | None, second: float, **more: Any) -> None:
        at = int((START + timedelta(seconds=second)).timestamp() * 1000)
        self._producer.produce(
            self.contract.topic, value=value, key=key, timestamp=at, on_delivery=self._delivered, **more
        )

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged.append((message.partition(), message.offset()))


def add_partitions(settings: Settings, contract: Contract, partitions: int) -> None:
    """Give the topic this number of partitions, and wait until the broker tells its clients of them.

    The request is answered as soon as the controller has the partitions; until the broker has heard of them too, a new
    producer is told the old number, and refuses the new partitions.
    """
    client = AdminClient(confluent_config(settings))
    client.create_partitions([NewPartitions(contract.topic, partitions)])[contract.topic].result(30)

    @retry(retry=retry_if_result(lambda known: known < partitions), stop=stop_after_delay(30), wait=wait_fixed(0.05))
    def known() -> int:
        return len(client.list_topics(contract.topic, timeout=10).topics[contract.topic].partitions)

    known()
