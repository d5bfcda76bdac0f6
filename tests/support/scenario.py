"""A seeded scenario: some minutes of every stream of the shop, out of order, with duplicates, late rows and poison.

It has few users, pages and products, so that sessions, joins and patterns happen all the time. It is made from the contracts'
schemas alone. The seed and the plain name of a stream decide its records, whatever its topic is called.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import Any

from confluent_kafka import Producer
from tests.shop.oracles.record import Record

from lockstep.contracts import Contract
from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings

# In the past on every machine: the broker refuses timestamps that are more than an hour ahead of its clock.
START = datetime.combine(datetime.now(UTC).date() - timedelta(days=1), time(10), UTC)
# Shares of the events. Of each kind there is at least one per stream, however few events it has.
DUPLICATES, LATE, POISONED = 0.05, 0.01, 0.001
# More than the 300 s that an event's time may be ahead of its arrival.
FAR_AHEAD = timedelta(days=1)
# How late a row may be, in seconds, in one view or another of the shop.
LIMITS = (5, 10, 30, 600)
POOLS: dict[str, list[Any]] = {
    "user_id": [f"u{n}" for n in range(1, 7)],
    "page": ["/", "/search", "/cart", "/help/product/P1", *(f"/product/P{n}" for n in range(1, 5))],
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
    "ledger": ["GBP", "EUR"],
    "cart_id": [f"c{n}" for n in range(1, 5)],
    **{name: ["outside", "alice", "bob", "carol"] for name in ("account", "from_account", "to_account")},
}
# By stream, the kinds of an aggregate's events.
TYPES = {
    "account_events": ["opened", "deposited", "withdrawn", "transferred"],
    "cart_events": ["added", "added", "added", "removed", "quantity_set", "checked_out"],
}


@dataclass(frozen=True)
class Sent:
    """A record to send to a stream."""

    stream: str
    key: bytes | None
    value: bytes | None
    arrival: datetime


def events(stream: str, contract: Contract, seed: int, minutes: float, every: float) -> list[Sent]:
    """A stream's events: one every ``every`` seconds on average, each after a delay, some twice, some late, some broken."""
    dice = Random(f"{stream}/{seed}")
    sent, second = [], 0.0
    while (second := second + dice.expovariate(1 / every)) < minutes * 60:
        event = _event(stream, contract, dice, second)
        late = dice.uniform(60, 600) if dice.random() < LATE else min(dice.expovariate(2), 4.5)
        arrived = _delayed(event, late)
        sent.append(arrived)
        if dice.random() < DUPLICATES:
            sent.append(_delayed(arrived, dice.uniform(0.1, 60)))
        if dice.random() < POISONED:
            sent.append(_truncated(arrived))
    return sent + _one_of_each_disturbance(stream, contract, dice)


def _event(stream: str, contract: Contract, dice: Random, second: float, **changes: Any) -> Sent:
    """A valid event, which arrives when it happened; ``changes`` replace columns."""
    at = START + timedelta(seconds=round(second, 3))
    row = _row(contract, dice, at) | {"event_id": f"{dice.getrandbits(64):016x}", contract.event_time: _iso(at)}
    if stream in TYPES:
        row["type"] = dice.choice(TYPES[stream])
    key = "/".join(str(row[name]) for name in contract.key).encode()
    return Sent(stream, key, json.dumps(row | changes).encode(), at)


def _one_of_each_disturbance(stream: str, contract: Contract, dice: Random) -> list[Sent]:
    """A duplicate, late events, an event from the future, truncated JSON, and an event without each required column."""
    first = _event(stream, contract, dice, 60)
    ahead = {contract.event_time: _iso(START + FAR_AHEAD)}
    return [
        first,
        _delayed(first, dice.uniform(0.1, 60)),
        _truncated(first),
        _delayed(_event(stream, contract, dice, 90), dice.uniform(60, 600)),
        _event(stream, contract, dice, 120, **ahead),
        *(_event(stream, contract, dice, 150, **{name: None}) for name in contract.required),
        # As late as a view allows, a millisecond less, and a millisecond more.
        *(
            _delayed(_event(stream, contract, dice, 180 + limit / 10), limit + n / 1000)
            for limit in LIMITS
            for n in (-1, 0, 1)
        ),
    ]


def _delayed(sent: Sent, seconds: float) -> Sent:
    return replace(sent, arrival=sent.arrival + timedelta(seconds=round(seconds, 3)))


def _truncated(sent: Sent) -> Sent:
    assert sent.value is not None
    return replace(sent, value=sent.value[: len(sent.value) // 2])


def changes(stream: str, contract: Contract, seed: int, minutes: float, every: float) -> list[Sent]:
    """A table's changes as Debezium writes them: rows of few keys are inserted, updated and sometimes deleted."""
    dice = Random(f"{stream}/{seed}")
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    sent, second, lsn = [], 0.0, 1000
    while (second := second + dice.expovariate(1 / every)) < minutes * 60:
        at, lsn = START + timedelta(seconds=round(second, 3)), lsn + dice.randrange(1, 50)
        after: dict[str, Any] | None = _row(contract, dice, at)
        identity = tuple(after[name] for name in contract.unique_id)
        before = rows.get(identity)
        if before is not None and dice.random() < 0.05:
            after = None
        sent.append(_change(stream, contract, identity, before, after, lsn, at))
        if after is None:
            del rows[identity]
            sent.append(Sent(stream, sent[-1].key, None, sent[-1].arrival))
        else:
            rows[identity] = after
            if dice.random() < DUPLICATES:
                sent.append(sent[-1])
    # At least one duplicate, one truncated record, and one row without a required column.
    at, incomplete = START + timedelta(minutes=minutes), _row(contract, dice, START) | {contract.required[-1]: None}
    broken = _change(stream, contract, ("broken",) * len(contract.unique_id), None, incomplete, lsn + 1, at)
    return [*sent, sent[0], _truncated(sent[0]), broken]


def _change(
    stream: str, contract: Contract, identity: tuple[Any, ...], before: Any, after: Any, lsn: int, at: datetime
) -> Sent:
    op = "d" if after is None else "c" if before is None else "u"
    millis = int(at.timestamp() * 1000)
    source = {"lsn": lsn, "ts_ms": millis, "snapshot": "false", "sequence": json.dumps([str(lsn), str(lsn)])}
    envelope = {"before": before, "after": after, "op": op, "source": source, "ts_ms": millis}
    key = json.dumps(dict(zip(contract.unique_id, identity, strict=True))).encode()
    return Sent(stream, key, json.dumps(envelope).encode(), at + timedelta(milliseconds=200))


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


def send(
    settings: Settings, contracts: Mapping[str, Contract], sent: Iterable[Sent], until: datetime
) -> dict[str, list[Record]]:
    """Send the records in the order of their arrival, then a heartbeat at ``until`` to every partition.

    Returns:
        the records that the broker acknowledged, by stream.
    """
    acknowledged: dict[str, list[Record]] = {name: [] for name in contracts}
    producer = Producer(confluent_config(settings) | {"acks": "all", "enable.idempotence": True, "log_level": 0})
    for record in sorted(sent, key=lambda s: s.arrival):
        _send(producer, contracts[record.stream], record, acknowledged[record.stream], {})
    for name, contract in contracts.items():
        for partition in range(contract.partitions):
            heartbeat = Sent(name, None, None, until)
            headers = {"partition": partition, "headers": [("lockstep-heartbeat", b"1")]}
            _send(producer, contract, heartbeat, acknowledged[name], headers)
    assert producer.flush(60) == 0
    return acknowledged


def _send(producer: Producer, contract: Contract, sent: Sent, acknowledged: list[Record], more: dict[str, Any]) -> None:
    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        arrival = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
        acknowledged.append(Record(sent.stream, message.partition(), message.offset(), arrival, _parsed(sent.value)))

    at = int(sent.arrival.timestamp() * 1000)
    producer.poll(0)
    producer.produce(contract.topic, sent.value, sent.key, timestamp=at, on_delivery=delivered, **more)


def _parsed(value: bytes | None) -> dict[str, Any] | None:
    try:
        return json.loads(value) if value else None
    except json.JSONDecodeError:
        return None
