"""Short notation for the events of a test: as the broker's records for the oracle, and the rows that a view makes of them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from tests.shop.oracles.record import Record
from tests.shop.unit.views.feed import bag, batch, from_gold, in_steps, live, route
from tests.support.records import START, at

from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed

END = START + timedelta(days=100)
# A stream, the seconds after the start, and the columns of the payload that matter.
Event = tuple[str, float, Mapping[str, Any]]
Key = Callable[[str, Mapping[str, Any]], str | None]
MANY = settings(max_examples=300)
# Anywhere, and 5 s after an event of the tests: it has arrived by then, and must wait for others that are on time.
CUTS = st.lists(st.integers(0, 9000) | st.integers(0, 180).map(lambda n: 50 * n + 5), max_size=6)
_FILLER = {"BOOLEAN": True, "INT": 1, "STRING": "x"}


def records_of(events: Iterable[Event], *streams: str) -> dict[str, list[Record]]:
    """The broker's records of the events, by stream. Each arrives a second after it happened."""
    records: dict[str, list[Record]] = {stream: [] for stream in streams}
    for offset, (stream, second, payload) in enumerate(events):
        # Ids whose order is not that of the list.
        own = {"event_id": f"{(offset * 7919) % 10007:05d}", "event_time": at(second).isoformat()}
        value = _required(stream) | own | dict(payload)
        records[stream].append(Record(stream, 0, offset, at(second + 1), value))
    return records


def _required(stream: str) -> dict[str, Any]:
    """A value for each required column, because a row without one does not count."""
    contract = CONTRACTS[stream]
    return {name: _FILLER.get(contract.columns[name], "1.000") for name in contract.required}


def rows_of(view: Keyed, key: Key, events: Iterable[Event], cuts: Iterable[float] = ()) -> list[dict[str, Any]]:
    """All rows of the view, with ``at``, from the live layer; the batch layer must give the same.

    Args:
        key: the key of a payload, as the view's SQL gives it; None if the view does not want the row.
        cuts: the seconds at which a micro-batch of the live layer ends.
    """

    def keys(stream: str, row: Mapping[str, Any]) -> list[str]:
        found = key(stream, row)
        return [] if found is None else [found]

    routed = route(view, keys, records_of(events, *CONTRACTS))
    rows = live(view, routed, END, cuts)
    assert bag(rows, without="") == bag(batch(view, routed, END), without="")
    assert bag(rows, without="") == bag(in_steps(view, routed, END, Random(1)), without="")
    assert bag(rows, without="") == bag(from_gold(view, routed, END, Random(2)), without="")
    return rows
