"""An aggregate with topics of its own, processors that decide for it, and its topics as any client reads them."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Producer
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.support.committed import read_all

from lockstep.commands.aggregate import Aggregate, Command
from lockstep.commands.client import send
from lockstep.commands.processor import run
from lockstep.commands.records import Outcome
from lockstep.commands.topics import ensure
from lockstep.failpoints import VARIABLE
from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings
from shop.aggregates.accounts import AGGREGATE

DECIDER = Path(__file__).with_name("decider.py")


@dataclass(frozen=True)
class Bank:
    """The aggregate ``accounts`` under a name of its own. Its ledger is ``GBP``."""

    settings: Settings
    aggregate: Aggregate[Any, Any, Any]

    def send(self, command: Command) -> Outcome:
        return send(self.settings, self.aggregate, command)

    def produce(self, *commands: Command | bytes, partition: int = 0, key: str = "GBP") -> None:
        """Send commands, and wait for no answer."""
        producer = Producer(confluent_config(self.settings))
        for command in commands:
            value = command if isinstance(command, bytes) else command.model_dump_json().encode()
            producer.produce(self.aggregate.topic("commands"), value, key, partition)
        assert producer.flush(30) == 0

    def read(self, part: str) -> list[dict[str, Any]]:
        """The committed values of one of its topics."""
        return [json.loads(message.value()) for message in read_all(self.settings, self.aggregate.topic(part))]

    def outcomes(self, number: int) -> list[dict[str, Any]]:
        """Wait until so many commands were decided; their outcomes."""
        found = Retrying(
            stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_result(lambda o: len(o) < number)
        )
        return list(found(self.read, "outcomes"))

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Processors of all partitions run."""
        stop = Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, self.settings, {self.aggregate: range(self.aggregate.partitions)}, stop)
            try:
                yield
            finally:
                stop.set()
                running.result()

    def start(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        """Start a process that decides, and kills itself at the failpoint."""
        environment = os.environ | ({VARIABLE: crash_at} if crash_at else {})
        return subprocess.Popen(
            [sys.executable, str(DECIDER), self.aggregate.name], env=environment, start_new_session=True
        )


@pytest.fixture
def bank(settings: Settings) -> Callable[..., Bank]:
    """Makes an aggregate, perhaps with other fields."""

    def make(**fields: Any) -> Bank:
        aggregate = replace(AGGREGATE, name=f"accounts_{uuid.uuid4().hex[:8]}", **{"partitions": 1, **fields})
        ensure(settings, aggregate)
        return Bank(settings, aggregate)

    return make
