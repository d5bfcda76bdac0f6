"""Makes the records that arrive from the events that happened: delays, duplicates, late and poisoned events. Pure."""

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from lockstep.contracts import CONTRACTS, Contract
from shop.simulate.plan import Amounts
from shop.simulate.sessions import DAY, HOUR, MINUTE, SECOND, Event, stamp

# What a poisoned record has where a value should be of another type than text.
WRONG_TYPE = "not a value of this type"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Record(NamedTuple):
    """A record for Kafka. ``arrival`` (milliseconds, UTC) becomes its timestamp.

    A heartbeat has no key and no value, and names its partition. The key of every other record decides its partition.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    arrival: int
    partition: int | None = None


def arrivals(rng: Random, events: Iterable[Event], amounts: Amounts, last: int) -> list[Record]:
    """The records of the events in the order of their arrival, none after ``last``.

    A duplicate is the same bytes again within a minute. A late event arrives five minutes to three hours after it happened. A
    poisoned record is added beside its event, which stays as it is.
    """
    records = []
    for event in events:
        value, key = _encode(event.payload).encode(), event.key.encode()
        arrival = min(event.at + _delay(rng, amounts.late), last)
        records.append(Record(event.topic, key, value, arrival))
        if rng.random() < amounts.duplicates:
            again = min(arrival + rng.randrange(100, 60 * SECOND), last)
            records.append(Record(event.topic, key, value, again))
        if rng.random() < amounts.poisoned:
            fresh = event._replace(payload=event.payload | {"event_id": f"{rng.getrandbits(96):024x}"})
            records.append(Record(event.topic, key, rng.choice(POISONS)(rng, fresh), arrival))
    # Python's sort is stable: an event stays before its duplicate even if ``last`` gave both the same arrival.
    return sorted(records, key=lambda record: record.arrival)


def _delay(rng: Random, late: float) -> int:
    if rng.random() < late:
        return int(5 * MINUTE * (3 * HOUR / (5 * MINUTE)) ** rng.random())
    slow = rng.random() < 0.005
    return rng.randrange(3 * SECOND, 10 * SECOND) if slow else 20 + min(int(rng.expovariate(1 / 600)), 2_900)


def _broken_json(rng: Random, event: Event) -> bytes:
    text = _encode(event.payload)
    return text[: rng.randrange(1, len(text) - 1)].encode()


def _not_an_object(_rng: Random, event: Event) -> bytes:
    return _encode([event.payload["event_id"]]).encode()


def _not_utf8(_rng: Random, event: Event) -> bytes:
    return b"\xff\xfe" + _encode(event.payload).encode()


def _empty(_rng: Random, _event: Event) -> bytes:
    return b""


def _field_missing(rng: Random, event: Event) -> bytes:
    missing = rng.choice(CONTRACTS[event.topic].required)
    return _encode({name: value for name, value in event.payload.items() if name != missing}).encode()


def _field_null(rng: Random, event: Event) -> bytes:
    return _changed(event, {rng.choice(CONTRACTS[event.topic].required): None})


def _wrong_type(rng: Random, event: Event) -> bytes:
    return _changed(event, {rng.choice(_typed(CONTRACTS[event.topic])): WRONG_TYPE})


def _far_future(rng: Random, event: Event) -> bytes:
    return _changed(event, {"event_time": stamp(event.at + rng.randrange(1, 400) * DAY)})


def _changed(event: Event, changes: dict[str, Any]) -> bytes:
    return _encode(event.payload | changes).encode()


def _typed(contract: Contract) -> list[str]:
    """The required columns whose type is not text."""
    types = contract.columns
    return [name for name in contract.required if types[name] != "STRING"]


POISONS: tuple[Callable[[Random, Event], bytes], ...] = (
    _broken_json,
    _not_an_object,
    _not_utf8,
    _empty,
    _field_missing,
    _field_null,
    _wrong_type,
    _far_future,
)
