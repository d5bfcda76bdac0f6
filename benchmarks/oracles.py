"""Compare both layers with the oracles after a run of ``everything.py``: all records that the broker has, plain Python over them.

On the stack on which it ran, with the shop closed and nothing behind. The broker and the control database are enough::

    python benchmarks/oracles.py

The oracles of ``tests/shop`` share no code with the platform. One compares each record with all others, so it is asked in parts
that have nothing to do with each other, such as one user's records. Gold and live must have the same rows, the oracle must have
each of them, and what it has more must not be final yet. Prints a table, and ends with 1 where that is not so.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.shop.integration.views.layers import batch_and_live_rows, batch_rows, columns_without_oracle
from tests.shop.oracles import tokens
from tests.shop.oracles.record import Record, accepted, parsed
from tests.support.keys import keys_of

from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.ingest.consumer import read_small
from lockstep.ingest.offsets import topic_offsets
from lockstep.ledger.ranges import Range
from lockstep.live.frontier import batch_final
from lockstep.settings import Settings, load
from lockstep.testing import comparable
from shop.simulate.disturb import WRONG_TYPE

Records = Mapping[str, list[Record]]
# By view, a column in which the records of two parts differ; streams without it belong to all parts. Other views are asked once.
PARTS = {
    "activity_within_five_minutes": "user_id",
    "ad_click_through": "user_id",
    "ad_ctr": "ad_id",
    "failed_logins": "user_id",
    "fraud_alerts": "user_id",
    "low_stock_alerts": "product_id",
    "orders_in_eight_minutes": "country",
    "page_views_enriched": "user_id",
    "price_changes_followed": "product_id",
    "product_stock": "product_id",
    "recently_viewed": "user_id",
    "saved_search_matches": "query",
    "search_click_through": "session_id",
    "search_positions": "query",
    "user_sessions": "user_id",
    "viewed_together": "user_id",
}
# How long after the last time in it a row is final, where it has to wait for what may still come.
WAITS = {
    "ad_click_through": timedelta(minutes=10),
    "ad_ctr": timedelta(minutes=10),
    "search_click_through": timedelta(hours=1),
    "search_positions": timedelta(hours=1),
    "user_sessions": timedelta(minutes=10),
    # A row has the beginning of its visit alone.
    "viewed_together": timedelta(days=1),
}


def main() -> int:
    config = load()
    sent = {name: list(records(config, contract)) for name, contract in CONTRACTS.items()}
    times = {r.value["event_id"]: parsed(r.value["event_time"]) for of in sent.values() for r in accepted(of)}
    tokens.key_of = cache(lambda user: keys_of(config, user)[0])
    table = Table("view", "rows", "live is not gold", "not in the oracle", "missing", "not final yet")
    table.columns[0].no_wrap = True
    wrong = 0
    for view in chosen(config.views):
        gold, live = batch_and_live_rows(None, config, view)
        found, expected, last = batch_rows(None, config, view), Counter[str](), {}
        for row in rows(view, sent):
            (text,) = comparable([row], columns_without_oracle(view))
            expected[text] += 1
            last[text] = newest(row, times)
        until, wait = batch_final(config, view), WAITS.get(view.name, timedelta())
        final = [until is not None and last[text] < until - wait for text in (expected - found).elements()]
        differ = [((gold - live) + (live - gold)).total(), (found - expected).total(), sum(final)]
        wrong += sum(differ)
        table.add_row(view.name, *(f"{n:,}" for n in (gold.total(), *differ, len(final) - sum(final))))
    Console().print(table)
    return int(wrong > 0)


def records(config: Settings, contract: Contract) -> Iterator[Record]:
    """The records of a topic, as the oracles get them."""
    ends = topic_offsets(config, contract.topic).partitions.items()
    found = read_small(config, [Range(contract.topic, "", p, first, end) for p, (first, end) in ends if first < end])
    for row in found.select(["partition", "offset", "timestamp", "value"]).to_pylist():
        yield Record(contract.name, row["partition"], row["offset"], row["timestamp"], _object(row["value"]))


def _object(raw: bytes | None) -> dict[str, Any] | None:
    try:
        value = None if raw is None or WRONG_TYPE.encode() in raw else json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def rows(view: View, sent: Records) -> Iterator[dict[str, Any]]:
    """What the oracle of a view says of the records."""
    oracle = import_module(f"tests.shop.oracles.{view.name}").rows
    for part in parts(view, sent):
        yield from oracle(part)


def parts(view: View, sent: Records) -> list[Records]:
    """The records of a view in parts of which none has to do with another."""
    column = PARTS.get(view.name)
    if column is None:
        return [sent]
    divided = [stream for stream in view.streams if column in CONTRACTS[stream].columns]
    of_all = {stream: sent[stream] for stream in view.streams if stream not in divided}
    found: defaultdict[Any, dict[str, list[Record]]] = defaultdict(lambda: of_all | {stream: [] for stream in divided})
    for stream in divided:
        for record in sent[stream]:
            value = record.value or {}
            # An event, or a row before and after its change.
            images = [value[name] for name in ("before", "after") if value.get(name)] or [value]
            for part in {image.get(column) for image in images}:
                found[part][stream].append(record)
    return [*found.values()]


def newest(row: Mapping[str, Any], times: Mapping[str, datetime]) -> datetime:
    """The latest time that a row speaks of, itself or by an event's id."""
    own = [value for value in row.values() if isinstance(value, datetime)]
    of_events = [times[value] for value in row.values() if isinstance(value, str) and value in times]
    return max((*own, *of_events), default=datetime.max.replace(tzinfo=UTC))


if __name__ == "__main__":
    sys.exit(main())
