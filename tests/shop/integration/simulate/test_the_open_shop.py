"""The shop goes on in real time: what is due reaches Kafka and PostgreSQL, and keeps the contracts.

It changes the shop for good, so it runs after the tests of the history: files run in the order of their names.
"""

import json
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from psycopg2.extensions import cursor

from lockstep.contracts import CONTRACTS
from lockstep.settings import Settings
from shop.simulate.keep_open import Pace, Sent, keep_open

CLEAN = {"duplicates": 0.0, "late": 0.0, "poisoned": 0.0}


def test_events_and_orders_come_as_they_are_due(shop: Settings, sql: cursor) -> None:
    sql.execute("SELECT count(*), (SELECT sum(stock) FROM public.inventory) FROM public.orders")
    before = sql.fetchone()
    sql.connection.commit()
    opened, stopping, steps, last = datetime.now(UTC), threading.Event(), [], Sent()
    began = time.monotonic()
    for sent in keep_open(shop, Pace(200, 1, CLEAN), stopping):
        steps.append(list(sent.last))
        last = sent
        # An order every second or so: some of them, and of everything else.
        if last.orders >= 3 and len(last.records) >= 8:
            stopping.set()
        assert time.monotonic() < began + 60, last

    events = [json.loads(record.value or b"") | {"topic": record.topic} for step in steps for record in step]
    assert Counter(event["topic"] for event in events) == last.records
    # An event arrives up to ten seconds after it happened.
    assert all(datetime.fromisoformat(event["event_time"]) >= opened - timedelta(seconds=10) for event in events)
    for event in events:
        contract = CONTRACTS[event.pop("topic")]
        assert event.keys() <= contract.columns.keys()
        assert all(event.get(name) is not None for name in contract.required)
    sql.execute(
        "SELECT count(*), (SELECT sum(stock) FROM public.inventory), count(*) FILTER (WHERE ordered_at > %s) FROM public.orders",
        (opened,),
    )
    orders, stock, new = sql.fetchone() or ()
    assert (orders - before[0], new) == (last.orders, last.orders)
    assert stock != before[1]
    sql.execute("SELECT count(*) FROM public.order_lines WHERE ordered_at > %s", (opened,))
    assert sql.fetchone()[0] >= last.orders
