"""What a test says has happened, given to a view's machines and, as the broker's records, to its oracle."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from tests.shop.oracles.record import Record

from lockstep.definition import Event, Keyed, states
from lockstep.definition.keyed import advance

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
END = START + timedelta(days=60)
# A stream, the seconds after START, and the payload's other columns.
Happened = tuple[str, float, Mapping[str, Any]]
Key = Callable[[str, Mapping[str, Any]], str | None]
MANY = settings(max_examples=300)
CUTS = st.lists(st.integers(0, 9000), max_size=4)


def at(second: float) -> datetime:
    """An instant of the test."""
    return START + timedelta(seconds=second)


def payloads(happened: Iterable[Happened]) -> list[tuple[str, dict[str, Any]]]:
    """Each with its stream; the ids are such that their order is not that of the list."""
    return [
        (stream, {"event_id": f"{(number * 7919) % 10007:05d}", "event_time": at(second).isoformat(), **fields})
        for number, (stream, second, fields) in enumerate(happened)
    ]


def machines(view: Keyed, key: Key, happened: Iterable[Happened], cuts: Iterable[float] = ()) -> list[dict[str, Any]]:
    """All rows of the view once everything is over, with ``at``.

    Args:
        key: the machine's key of a payload, as the view's SQL says; None where it does not want the row.
        cuts: the seconds at which the machines are stopped, and started again from their written state.
    """
    columns = {one.stream: one.columns for one in view.inputs}
    by_key: dict[str, list[Event]] = {}
    for stream, payload in payloads(happened):
        machine = key(stream, payload)
        if stream in columns and machine is not None:
            data = states.loads(json.dumps({name: payload.get(name) for name in columns[stream]}))
            event = Event(datetime.fromisoformat(payload["event_time"]), payload["event_id"], stream, data)
            by_key.setdefault(machine, []).append(event)
    return [row for events in by_key.values() for row in _machine(view, sorted(events), sorted(cuts))]


def _machine(view: Keyed, events: list[Event], cuts: list[float]) -> list[dict[str, Any]]:
    state, rows, low = None, [], START - timedelta(days=1)
    for high in [*map(at, cuts), END]:
        part = [event for event in events if low <= event.time < high]
        state, new = advance(view, states.loads(states.dumps(state)), part, high)
        rows += new
        low = high
    return rows


def records(happened: Iterable[Happened], *streams: str) -> dict[str, list[Record]]:
    """What the broker has acknowledged, each a second after it happened."""
    found: dict[str, list[Record]] = {stream: [] for stream in streams}
    for offset, (stream, payload) in enumerate(payloads(happened)):
        arrival = datetime.fromisoformat(payload["event_time"]) + timedelta(seconds=1)
        found[stream].append(Record(stream, 0, offset, arrival, payload))
    return found


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The rows without ``at``, whatever their order."""
    return Counter(str(sorted((name, value) for name, value in row.items() if name != "at")) for row in rows)
