"""The open shop keeps its pace, sends everything once and in time, and sells what it says that it sells."""

import json
from collections import Counter
from datetime import UTC, datetime
from random import Random

import pytest

from shop.simulate.plan import Amounts, Plan
from shop.simulate.real_time import Due, RealTime
from shop.simulate.retail import Retail
from shop.simulate.traffic import baskets, milliseconds, search_words

OPENED = milliseconds(datetime(2026, 11, 21, 9, tzinfo=UTC))
SECOND = 1000
CLEAN = {"duplicates": 0.0, "late": 0.0, "poisoned": 0.0}


def opened(plan: Plan, shop: Retail, rate: float = 50, burst: float = 1, **amounts: float) -> RealTime:
    drawn_from = baskets(shop, plan.start, plan.end)
    made = Amounts.model_validate(amounts)
    return RealTime(Random(1), drawn_from, search_words(shop.products), made, rate, burst, OPENED)


def in_steps(traffic: RealTime, seconds: int, step: int = 250) -> list[Due]:
    return [traffic.until(OPENED + at) for at in range(step, seconds * SECOND + 1, step)]


def test_it_keeps_the_pace_from_the_first_minute_on(plan: Plan, shop: Retail) -> None:
    lines = {basket.order_id: len(basket.products) for basket in baskets(shop, plan.start, plan.end)}
    steps = in_steps(opened(plan, shop, 50, **CLEAN), 600)
    # An order is a record, and so are each of its lines and each product's new stock.
    minutes = [
        sum(len(s.records) + sum(1 + 2 * lines[o.template] for o in s.orders) for s in steps[m * 240 : (m + 1) * 240])
        for m in range(10)
    ]
    assert sum(minutes) == pytest.approx(50 * 600, rel=0.15)
    assert min(minutes) > 50 * 60 / 3


def test_what_is_ordered_is_paid_and_never_a_refund(plan: Plan, shop: Retail) -> None:
    records = [record for due in in_steps(opened(plan, shop, 200, **CLEAN), 300) for record in due.records]
    amounts = [float(json.loads(record.value)["amount"]) for record in records if record.topic == "payments"]
    assert len(amounts) > 20
    assert min(amounts) > 0


def test_records_are_due_in_order_and_none_before_its_time(plan: Plan, shop: Retail) -> None:
    before = OPENED
    for number, due in enumerate(in_steps(opened(plan, shop), 60), 1):
        now = OPENED + number * 250
        arrivals = [record.arrival for record in due.records]
        assert arrivals == sorted(arrivals)
        assert all(before <= at < now for at in arrivals)
        before = now


def test_an_event_arrives_within_ten_seconds_unless_it_is_late(plan: Plan, shop: Retail) -> None:
    records = [r for due in in_steps(opened(plan, shop, **CLEAN), 300) for r in due.records]
    delays = [
        r.arrival - milliseconds(datetime.fromisoformat(json.loads(r.value or b"")["event_time"])) for r in records
    ]
    assert min(delays) >= 20 and max(delays) < 10 * SECOND


def test_every_order_is_paid(plan: Plan, shop: Retail) -> None:
    # From the opening on for half an hour: an order of the first minutes is paid within the next two.
    steps = in_steps(opened(plan, shop, **CLEAN), 600, step=1000)
    orders = [order.order_id for due in steps for order in due.orders if order.ordered_at < OPENED + 480 * SECOND]
    payments = Counter(
        json.loads(r.value or b"")["order_id"] for due in steps for r in due.records if r.topic == "payments"
    )
    assert orders
    assert len(set(orders)) == len(orders)
    assert set(orders) <= payments.keys()
    assert set(payments.values()) == {1}


def test_a_flash_crowd_comes_at_the_beginning_of_each_minute(plan: Plan, shop: Retail) -> None:
    def home_pages(burst: float) -> list[int]:
        # Nearly all visitors only look: who buys begins some minutes later.
        steps = in_steps(opened(plan, shop, burst=burst, sessions_per_order=1000, **CLEAN), 120, step=10 * SECOND)
        pages = [json.loads(r.value or b"") for due in steps for r in due.records if r.topic == "page_views"]
        first = [p for p in pages if p["page"] == "/"]
        crowd = sum(datetime.fromisoformat(p["event_time"]).second < 10 for p in first)
        return [crowd, len(first) - crowd]

    usual, crowded = home_pages(1), home_pages(10)
    assert usual[0] < usual[1] / 3
    assert crowded[0] > crowded[1]
