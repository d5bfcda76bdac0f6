"""Disturbances add to the clean events, and each poison breaks its contract."""

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.contracts import CONTRACTS
from shop.simulate.chance import seeded
from shop.simulate.disturb import POISONS, arrivals
from shop.simulate.plan import Amounts
from shop.simulate.sensors import readings
from shop.simulate.sessions import HOUR, Basket, Event, buying

START = 1_790_000_000_000
BASKET = Basket("1", "12345", "France", "sale", START, ["A", "B"], 12_340)


def events(seed: int) -> list[Event]:
    rng = seeded(seed)
    return buying(rng, BASKET, {"A": "pink mug"}) + readings(rng, 2, START, START + HOUR, 600_000)


shares = st.floats(min_value=0, max_value=1)


@given(seed=st.integers(), duplicates=shares, late=shares, poisoned=shares)
def test_every_clean_event_arrives_whatever_is_added(
    seed: int, duplicates: float, late: float, poisoned: float
) -> None:
    sent, last = events(seed), START + 2 * HOUR
    amounts = Amounts(duplicates=duplicates, late=late, poisoned=poisoned)
    records = arrivals(seeded(seed), sent, amounts, last)
    assert [r.arrival for r in records] == sorted(r.arrival for r in records)
    assert all(record.arrival <= last for record in records)
    arrived = {record.value for record in records}
    for event in sent:
        assert json.dumps(event.payload, ensure_ascii=False, separators=(",", ":")).encode() in arrived


def test_undisturbed_events_arrive_once() -> None:
    sent = events(1)
    records = arrivals(seeded(1), sent, Amounts(duplicates=0, late=0, poisoned=0), START + 2 * HOUR)
    assert len(records) == len(sent)


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_no_poison_could_pass_for_a_good_event(poison, seed: int) -> None:  # type: ignore[no-untyped-def]
    for event in events(seed):
        assert is_bad(event.topic, poison(seeded(seed), event), arrival=event.at)


def is_bad(topic: str, value: bytes, arrival: int) -> bool:
    """An independent reading of the contract."""
    contract = CONTRACTS[topic]
    types = contract.columns
    try:
        payload = json.loads(value.decode())
        happened = datetime.fromisoformat(payload["event_time"]).timestamp() * 1000
    except (ValueError, KeyError, TypeError):
        return True
    if any(payload.get(name) is None for name in contract.required):
        return True
    numbers = [name for name, kind in types.items() if kind == "INT" or kind.startswith("DECIMAL")]
    if any(isinstance(payload.get(name), str) and not is_number(payload[name]) for name in numbers):
        return True
    if any(not isinstance(payload[name], bool) for name, kind in types.items() if kind == "BOOLEAN"):
        return True
    return happened - arrival > contract.max_clock_skew.total_seconds() * 1000


def is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdigit()


def test_good_events_are_not_bad() -> None:
    for event in events(3):
        assert not is_bad(event.topic, json.dumps(event.payload).encode(), arrival=event.at)
