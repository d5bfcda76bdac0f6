"""The traffic around the orders, in the order of its arrival, made day by day from the seed. Pure."""

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from random import Random

import pandas as pd

from shop.simulate import sensors, sessions
from shop.simulate.chance import seeded
from shop.simulate.disturb import Record, arrivals
from shop.simulate.interests import interests
from shop.simulate.plan import Plan
from shop.simulate.retail import Retail
from shop.simulate.sessions import DAY, HOUR, Basket, Event


def milliseconds(moment: datetime) -> int:
    """Milliseconds since the epoch."""
    return round(moment.timestamp() * 1000)


class Traffic:
    """All traffic of a simulation. Each day has its own random numbers, so any slice can be made again on its own."""

    def __init__(self, plan: Plan, retail: Retail) -> None:
        self._plan = plan
        self._retail = retail
        known = retail.orders.dropna(subset="user_id")
        self._visitors = list(zip(known["user_id"], known["country"], strict=True))
        self._visited_at = [milliseconds(moment) for moment in known["ordered_at"]]
        self._words = search_words(retail.products)
        # A slice needs its own day and the day before, whose late events arrive in it.
        self._day = lru_cache(maxsize=2)(self._make_day)

    def between(self, start: datetime, end: datetime) -> list[Record]:
        """The records that arrive in ``[start, end)``, sorted by arrival; the end lies within a day of the start.

        Records that arrive before the start of the simulation belong to its first slice.
        """
        low = 0 if start <= self._plan.start else milliseconds(start)
        high = milliseconds(end)
        records: list[Record] = []
        for number in (-1, 0, 1):
            day = start.astimezone(UTC).date() + timedelta(days=number)
            if self._plan.start.date() <= day < self._plan.end.date() and _midnight(day) < high:
                made, moments = self._day(day)
                records += made[bisect_left(moments, low) : bisect_left(moments, high)]
        return sorted(records, key=lambda record: record.arrival)

    def _make_day(self, day: date) -> tuple[list[Record], list[int]]:
        plan, midnight = self._plan, _midnight(day)
        # The day as the file has it: the traffic is the same to whichever week it is moved.
        rng = seeded("traffic", plan.amounts.seed, day - timedelta(weeks=plan.shift_weeks))
        start = max(milliseconds(plan.start), midnight)
        events: list[Event] = []
        midnight_utc = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for basket in baskets(self._retail, max(midnight_utc, plan.start), midnight_utc + timedelta(days=1)):
            events += self._visits(rng, basket, start, midnight + DAY)
        interval = plan.amounts.sensor_interval * 1000
        events += sensors.readings(rng, plan.amounts.sensors, start, midnight + DAY, interval)
        # From a generator of their own, and last: the other streams do not depend on them.
        own_rng = seeded("interests", plan.amounts.seed, day - timedelta(weeks=plan.shift_weeks))
        events += interests(own_rng, events)
        records = arrivals(rng, events, plan.amounts, milliseconds(plan.end) - 1)
        return records, [record.arrival for record in records]

    def _visits(self, rng: Random, basket: Basket, start: int, end: int) -> list[Event]:
        events: list[Event] = []
        lookers = self._plan.amounts.sessions_per_order
        if basket.is_paid:
            events += sessions.buying(rng, basket, self._words)
            lookers -= 1
        earlier = bisect_left(self._visited_at, start)
        for _ in range(lookers):
            user_id, country = self._visitors[rng.randrange(earlier)] if earlier else (basket.user_id, basket.country)
            at = basket.ordered_at + rng.randrange(-2 * HOUR, 2 * HOUR)
            # The day's last hours stay free, so that a visit ends on the day that makes it.
            at = min(max(at, start), end - 3 * HOUR)
            events += sessions.browsing(rng, user_id, country, at, basket.products, self._words)
        return events


def baskets(retail: Retail, start: datetime, end: datetime) -> list[Basket]:
    """The orders of known customers in ``[start, end)``."""
    orders, lines = retail.between(start, end)
    values = (lines["unit_price"] * 1000).round().astype("int64") * lines["quantity"]
    by_order = lines.assign(value=values).groupby("order_id", sort=False)
    value, products = by_order["value"].sum(), by_order["product_id"].agg(list)
    known = orders.dropna(subset="user_id")
    who = zip(known["order_id"], known["user_id"], known["country"], known["kind"], known["ordered_at"], strict=True)
    return [
        Basket(order, user, country, kind, milliseconds(at), products[order], int(value[order]))
        for order, user, country, kind, at in who
    ]


def _midnight(day: date) -> int:
    return milliseconds(datetime(day.year, day.month, day.day, tzinfo=UTC))


def search_words(products: pd.DataFrame) -> dict[str, str]:
    """What people type to find a product: the last two words of its description."""
    named = products.dropna(subset="description")
    words = named["description"].str.lower().str.split().str[-2:].str.join(" ")
    return dict(zip(named["product_id"], words, strict=True))
