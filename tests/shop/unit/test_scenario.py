"""The scenario is the same for the same seed, and has every disturbance in every stream."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.scenario import LIMITS, START, changes, events

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS

MINUTES, EVERY = 5, 20
MAKERS = {"events": events, "changes": changes}
every_event_stream = pytest.mark.parametrize("name", [c.name for c in CONTRACTS.values() if c.kind == "events"])
every_change_stream = pytest.mark.parametrize("name", [c.name for c in CONTRACTS.values() if c.kind == "changes"])


def records(stream, seed=1, **changed):
    contract = CONTRACTS[stream]
    return MAKERS[contract.kind](stream, replace(contract, **changed), seed, MINUTES, EVERY)


def parsed(name):
    """The records that are JSON objects, and how many are not."""
    objects, broken = [], 0
    for record in records(name):
        try:
            objects += [(record.arrival, json.loads(record.value))] if record.value else []
        except json.JSONDecodeError:
            broken += 1
    return objects, broken


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_seed_and_the_plain_name_decide_the_records(name):
    assert records(name) == records(name, topic="another_topic", partitions=5)
    assert records(name, name=f"{name}_a1b2c3d4") == records(name)
    assert records(name, seed=2) != records(name)


@every_event_stream
def test_every_event_stream_has_duplicates_late_events_events_from_the_future_and_broken_records(name):
    objects, broken = parsed(name)
    delays = [at - datetime.fromisoformat(event["event_time"]) for at, event in objects if event["event_time"]]
    assert broken >= 1
    assert max(Counter(event["event_id"] for _, event in objects if event["event_id"]).values()) >= 2
    assert sum(timedelta(seconds=60) <= delay <= timedelta(seconds=661) for delay in delays) >= 1
    assert min(delays) < timedelta(seconds=-300)
    around = {timedelta(seconds=limit, milliseconds=n) for limit in LIMITS for n in (-1, 0, 1)}
    assert around <= set(delays)
    for column in CONTRACTS[name].required:
        assert any(event[column] is None for _, event in objects), f"no event without {column}"


@every_change_stream
def test_every_change_stream_has_duplicates_incomplete_rows_and_broken_records(name):
    objects, broken = parsed(name)
    assert broken >= 1
    assert max(Counter(change["source"]["lsn"] for _, change in objects).values()) >= 2
    incomplete = [
        change for _, change in objects if change["after"] and change["after"][CONTRACTS[name].required[-1]] is None
    ]
    assert incomplete


def test_every_limit_of_a_view_is_tried():
    assert {view.limit.total_seconds() for view in VIEWS.values() if any(view.times.values())} == {*LIMITS}


def test_the_scenario_is_in_the_past_for_the_broker():
    assert START + timedelta(hours=4) < datetime.now(UTC)
