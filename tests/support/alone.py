"""A view of the shop on topics and tables of its own, with records that a test makes."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Producer
from tests.support.records import at

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.refine.silver import refine
from lockstep.settings import Settings


@dataclass
class Alone:
    """The view, and the contracts of its own topics by the names of the originals."""

    settings: Settings
    view: View
    own: dict[str, Contract]

    def __post_init__(self) -> None:
        given = {"acks": "all", "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(confluent_config(self.settings) | given)

    def feed(self, *records: Any, passed: float) -> None:
        """Send records, and then a heartbeat to each topic: so many seconds have passed since the start."""
        for record in records:
            arrival = int(record.arrival.timestamp() * 1000)
            value = json.dumps(record.value).encode()
            self._producer.produce(self.own[record.stream].topic, value, b"k", timestamp=arrival, partition=0)
        for contract in self.own.values():
            stamp = int(at(passed).timestamp() * 1000)
            headers = [("lockstep-heartbeat", b"1")]
            self._producer.produce(contract.topic, None, None, partition=0, headers=headers, timestamp=stamp)
        assert self._producer.flush(30) == 0

    def take(self) -> list[Any]:
        """Run the batch layer; the rows of gold."""
        with connect(self.settings, "batch") as spark:
            for contract in self.own.values():
                ingest(spark, self.settings, contract, "run")
                refine(spark, self.settings, contract, "run")
            roll_up(spark, self.settings, self.view, "run")
            return list(spark.table(gold_of(self.view)).drop("at").collect())

    def live_rows(self, spark: Any) -> list[Any]:
        """The rows of the live table."""
        return list(spark.table(live_of(self.view)).drop("at", "_revision", "_updated_at").collect())


@contextmanager
def alone(settings: Settings, name: str) -> Iterator[Alone]:
    """A copy of the shop's view of this name, with a topic of one partition for each of its streams."""
    suffix = uuid.uuid4().hex[:8]
    view = replace(VIEWS[name], name=f"{name}_{suffix}")
    before = dict(CONTRACTS)
    own = {n: replace(before[n], name=f"{n}_{suffix}", topic=f"{n}_{suffix}", partitions=1) for n in view.streams}
    CONTRACTS.update(own)
    try:
        ensure_topics(settings, own)
        yield Alone(settings, view, own)
    finally:
        CONTRACTS.clear()
        CONTRACTS.update(before)
