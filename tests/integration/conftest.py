"""One broker, one PostgreSQL and one Spark server for all integration tests; each test has topics and tables of its own."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.ports import own_ports

from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS, Contract
from lockstep.kafka import confluent_config, ensure_topics
from lockstep.session import connect
from lockstep.settings import Settings
from lockstep.stack.stack import Stack
from lockstep.views import VIEWS, View

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, on a home and ports of their own."""
    with pytest.MonkeyPatch.context() as patch:
        own_ports(patch, tmp_path_factory.mktemp("home"))
        running = Stack(configuration.load())
        try:
            running.up(["postgres", "kafka", "spark"])
            yield running
        finally:
            running.reset()


@pytest.fixture(scope="session")
def settings(stack: Stack) -> Settings:
    return stack.settings


@pytest.fixture
def spark(settings: Settings) -> Iterator[Any]:
    with connect(settings, "test") as session:
        yield session


@pytest.fixture
def stream(settings: Settings) -> Iterator[Contract]:
    """A stream like page_views, with a topic and tables of its own."""
    name = f"page_views_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS["page_views"], name=name, topic=name)
    ensure_topics(settings, {name: contract})
    CONTRACTS[name] = contract
    yield contract
    del CONTRACTS[name]


@pytest.fixture
def view(stream: Contract) -> Iterator[View]:
    """The view page_views_per_minute, over the test's own stream."""
    own = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{stream.name[-8:]}", input=stream.name)
    VIEWS[own.name] = own
    yield own
    del VIEWS[own.name]


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

    def raw(self, value: bytes | None, arrives_at: float, key: str = "u1") -> None:
        """Any bytes, arriving at START + ``arrives_at`` seconds."""
        self._send(value, key.encode(), arrives_at)

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


@pytest.fixture
def shop(settings: Settings, stream: Contract) -> Shop:
    return Shop(settings, stream)


@pytest.fixture
def rows(spark: Any) -> Callable[[str], list[Any]]:
    """All rows of a table."""
    return lambda table: spark.table(table).collect()
