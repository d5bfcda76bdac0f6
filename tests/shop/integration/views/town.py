"""A small town that uses the shop for some minutes: every stream, seeded, out of order, with duplicates, late rows and poison.

Few users, pages and products, so that sessions, joins and patterns happen all the time. Made from the contracts' schemas alone.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from confluent_kafka import Producer
from tests.shop.oracles.record import Record

from lockstep.contracts import Contract
from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
DUPLICATES, LATE, POISONED = 0.05, 0.01, 0.001
POOLS: dict[str, list[Any]] = {
    "user_id": [f"u{n}" for n in range(1, 7)],
    "page": ["/", "/search", "/cart", "/checkout", *(f"/product/P{n}" for n in range(1, 5))],
    "country": ["France", "Germany", "Spain"],
    "device": ["mobile", "desktop"],
    "ad_id": ["a1", "a2", "a3", None],
    "query": ["red lamp", "blue lamp", "tea cup", "red tea cup", None],
    "product_id": [f"P{n}" for n in range(1, 5)],
    "description": ["RED LAMP", "BLUE LAMP, LARGE", "RED TEA CUP", "TEA CUP"],
    "endpoint": ["/", "/product", "/cart"],
    "status": [200, 200, 200, 200, 404, 500],
    "success": [True, False],
    "sensor_id": ["t1", "t2", "t3"],
    "metric": ["temperature"],
    "kind": ["sale", "sale", "sale", "cancellation"],
}


@dataclass(frozen=True)
class Sent:
    """A record on its way."""

    stream: str
    key: bytes | None
    value: bytes | None
    arrival: datetime


def events(contract: Contract, seed: int, minutes: float, every: float) -> list[Sent]:
    """A stream's events: one every ``every`` seconds on average, each after a delay, some twice, some late, some broken."""
    dice = Random(f"{contract.name}/{seed}")
    sent, second = [], 0.0
    while (second := second + dice.expovariate(1 / every)) < minutes * 60:
        at = START + timedelta(seconds=round(second, 3))
        row = _row(contract, dice, at) | {"event_id": f"{dice.getrandbits(64):016x}", contract.event_time: _iso(at)}
        delay = dice.uniform(60, 600) if dice.random() < LATE else min(dice.expovariate(2), 4.5)
        arrival = at + timedelta(seconds=round(delay, 3))
        key, value = "/".join(str(row[k]) for k in contract.key).encode(), json.dumps(row).encode()
        sent.append(Sent(contract.name, key, value, arrival))
        if dice.random() < DUPLICATES:
            sent.append(Sent(contract.name, key, value, arrival + timedelta(seconds=dice.uniform(0.1, 60))))
        if dice.random() < POISONED:
            sent.append(Sent(contract.name, key, value[: len(value) // 2], arrival))
    return sent


def changes(contract: Contract, seed: int, minutes: float, every: float) -> list[Sent]:
    """A table's changes as Debezium writes them: rows of few keys are inserted, updated and now and then deleted."""
    dice = Random(f"{contract.name}/{seed}")
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    sent, second, lsn = [], 0.0, 1000
    while (second := second + dice.expovariate(1 / every)) < minutes * 60:
        at, lsn = START + timedelta(seconds=round(second, 3)), lsn + dice.randrange(1, 50)
        after: dict[str, Any] | None = _row(contract, dice, at)
        identity = tuple(after[name] for name in contract.unique_id)
        before = rows.get(identity)
        if before is not None and dice.random() < 0.05:
            after = None
        sent.append(_change(contract, identity, before, after, lsn, at))
        if after is None:
            del rows[identity]
            sent.append(Sent(contract.name, sent[-1].key, None, sent[-1].arrival))
        else:
            rows[identity] = after
            if dice.random() < DUPLICATES:
                sent.append(sent[-1])
    return sent


def _change(contract: Contract, identity: tuple[Any, ...], before: Any, after: Any, lsn: int, at: datetime) -> Sent:
    op = "d" if after is None else "c" if before is None else "u"
    millis = int(at.timestamp() * 1000)
    source = {"lsn": lsn, "ts_ms": millis, "snapshot": "false", "sequence": json.dumps([str(lsn), str(lsn)])}
    envelope = {"before": before, "after": after, "op": op, "source": source, "ts_ms": millis}
    key = json.dumps(dict(zip(contract.unique_id, identity, strict=True))).encode()
    return Sent(contract.name, key, json.dumps(envelope).encode(), at + timedelta(milliseconds=200))


def _row(contract: Contract, dice: Random, at: datetime) -> dict[str, Any]:
    row = {name: _value(contract, dice, name, kind, at) for name, kind in contract.columns.items()}
    if row.get("session_id"):
        row["session_id"] = f"s-{row['user_id']}"
    if row.get("ad_id") and "query" in row:
        row["query"] = None
    return row


def _value(contract: Contract, dice: Random, name: str, kind: str, at: datetime) -> Any:
    needed = name in (*contract.required, *contract.key, *contract.unique_id) or contract.kind == "changes"
    pool = [v for v in POOLS.get(name, ()) if v is not None or not needed]
    if pool:
        return dice.choice(pool)
    if kind.startswith("TIMESTAMP"):
        return _iso(at)
    if kind.startswith("DECIMAL"):
        return f"{dice.randrange(1, 90)}.{dice.randrange(1000):03d}"
    if kind.startswith("BOOLEAN"):
        return dice.random() < 0.7
    if kind.startswith(("INT", "BIGINT")):
        return dice.randrange(1, 40)
    return f"{name}-{dice.randrange(1, 8)}"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def play(
    settings: Settings, contracts: Mapping[str, Contract], sent: Iterable[Sent], until: datetime
) -> dict[str, list[Record]]:
    """Send everything in the order of its arrival, then a heartbeat to every partition.

    Returns:
        What the broker acknowledged, by stream.
    """
    acknowledged: dict[str, list[Record]] = {name: [] for name in contracts}
    producer = Producer(confluent_config(settings) | {"acks": "all", "enable.idempotence": True, "log_level": 0})
    for one in sorted(sent, key=lambda s: s.arrival):
        _send(producer, contracts[one.stream], one, acknowledged[one.stream], {})
    for name, contract in contracts.items():
        for partition in range(contract.partitions):
            beat = Sent(name, None, None, until)
            headers = {"partition": partition, "headers": [("lockstep-heartbeat", b"1")]}
            _send(producer, contract, beat, acknowledged[name], headers)
    assert producer.flush(60) == 0
    return acknowledged


def _send(producer: Producer, contract: Contract, one: Sent, into: list[Record], more: dict[str, Any]) -> None:
    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        arrival = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
        into.append(Record(one.stream, message.partition(), message.offset(), arrival, _parsed(one.value)))

    at = int(one.arrival.timestamp() * 1000)
    producer.poll(0)
    producer.produce(contract.topic, one.value, one.key, timestamp=at, on_delivery=delivered, **more)


def _parsed(value: bytes | None) -> dict[str, Any] | None:
    try:
        return json.loads(value) if value else None
    except json.JSONDecodeError:
        return None
