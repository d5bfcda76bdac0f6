"""Spark's parser refuses every record that the simulator breaks, and accepts every record that it does not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.commands.registry import AGGREGATES
from lockstep.contracts import CONTRACTS
from lockstep.refine.parse import parse
from shop.simulate.chance import seeded
from shop.simulate.disturb import POISONS
from shop.simulate.sensors import readings
from shop.simulate.sessions import HOUR, Basket, Event, browsing, buying

BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type INT, "
    "key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, value BINARY"
)
START = 1_790_000_000_000
BASKET = Basket("1", "12345", "France", "sale", START, ["A", "B"], 12_340)
DECIDED = {aggregate.topic("events") for aggregate in AGGREGATES.values()}
EVENT_STREAMS = [c.name for c in CONTRACTS.values() if c.kind == "events" and c.topic not in DECIDED]


def events(topic: str) -> list[Event]:
    made = readings(seeded("sensors"), 2, START, START + 10 * HOUR, 600_000)
    for seed in range(20):
        made += buying(seeded(seed), BASKET, {"A": "pink mug"})
        made += browsing(seeded(seed), "12345", "France", START, ["A"], {})
    return [event for event in made if event.topic == topic][:50]


@pytest.mark.parametrize("topic", EVENT_STREAMS)
def test_every_poison_has_a_reason_and_no_clean_event_has_one(spark: Any, topic: str) -> None:
    clean = [(event, json.dumps(event.payload).encode()) for event in events(topic)]
    rng = seeded("poison")
    poisoned = [(event, poison(rng, event)) for event, _ in clean for poison in POISONS]
    rows = [
        (topic, 0, offset, datetime.fromtimestamp(event.at / 1000, UTC), 0, event.key.encode(), None, value)
        for offset, (event, value) in enumerate(clean + poisoned)
    ]
    parsed = parse(spark.createDataFrame(rows, BRONZE), CONTRACTS[topic]).select("_offset", "_reason").collect()
    assert len(parsed) == len(rows)
    refused = {row["_offset"] for row in parsed if row["_reason"]}
    assert refused == set(range(len(clean), len(rows)))
