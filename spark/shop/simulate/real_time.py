"""The open shop in real time: visits, orders, sensors and changes of the shop's tables as they happen. Pure, but for the clock.

Every record is due at its arrival. Visits begin at a pace that gives the wanted number of records a second on average, in Kafka's
topics and in the shop's tables together.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, NamedTuple

from shop.simulate import sensors, sessions
from shop.simulate.disturb import Record, arrivals
from shop.simulate.interests import interests
from shop.simulate.plan import Amounts
from shop.simulate.sessions import MINUTE, SECOND, Basket, Event

# An order ends a visit of up to this length, so this much of the traffic is under way when the shop opens.
_LEAD = 20 * MINUTE
# A flash crowd comes at the beginning of each minute.
_CROWD = 10 * SECOND
_NEVER = 1 << 62


class Order(NamedTuple):
    """An order to place, and the order of the history whose lines it has."""

    order_id: str
    ordered_at: int
    template: str


@dataclass(frozen=True)
class Due:
    """What happens in one step: records for Kafka, by arrival, and orders to place, by time."""

    records: list[Record]
    orders: list["Order"]


@dataclass
class RealTime:
    """The traffic of an open shop. Times are milliseconds since the epoch (UTC).

    Args:
        baskets: orders of the history; each new order has the customer and the lines of one that was paid.
        words: by product, what people type to find it.
        rate: records a second, on average.
        burst: in the first ten seconds of each minute, this many times as many visits begin.
        opened: when the shop opens.
    """

    rng: Random
    baskets: Sequence[Basket]
    words: dict[str, str]
    amounts: Amounts
    rate: float
    burst: float
    opened: int
    _records: list[tuple[int, int, Record]] = field(default_factory=list)
    _orders: list[tuple[int, int, Order]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._paid = [basket for basket in self.baskets if basket.is_paid]
        self._made_until = self.opened - _LEAD
        self._numbers = count()
        self._owed = 0.0
        self.until(self.opened)

    def until(self, now: int) -> Due:
        """Everything that is due before ``now``, and was not before the last call."""
        for start in range(self._made_until, now, SECOND):
            self._make(start, min(start + SECOND, now))
        self._made_until = max(self._made_until, now)
        return Due(_due(self._records, now), _due(self._orders, now))

    def _make(self, start: int, end: int) -> None:
        """Let visits begin, and sensors report, in ``[start, end)``."""
        crowd = self.burst if start % MINUTE < _CROWD else 1.0
        self._owed += self.rate * crowd * (end - start) / SECOND
        events = sensors.readings(self.rng, self.amounts.sensors, start, end, self.amounts.sensor_interval * 1000)
        self._owed -= len(events)
        while self._owed > 0:
            visit, order = self._visit(self.rng.randrange(start, end))
            self._owed -= len(visit)
            events += visit
            if order:
                heapq.heappush(self._orders, (order.ordered_at, next(self._numbers), order))
        for record in arrivals(self.rng, events, self.amounts, _NEVER):
            heapq.heappush(self._records, (record.arrival, next(self._numbers), record))

    def _visit(self, at: int) -> tuple[list[Event], Order | None]:
        """One visit from ``at`` on, and the order at its end: of ``sessions_per_order`` visits, one buys."""
        basket = self.rng.choice(self._paid)
        order = None
        if self.rng.randrange(self.amounts.sessions_per_order) == 0:
            order = Order(f"L{at:x}{self.rng.getrandbits(32):08x}", at + _LEAD, basket.order_id)
            # The order, its lines, and the stock of their products.
            self._owed -= 1 + 2 * len(basket.products)
            bought = basket._replace(order_id=order.order_id, ordered_at=order.ordered_at)
            visit = sessions.buying(self.rng, bought, self.words)
        else:
            visit = sessions.browsing(self.rng, basket.user_id, basket.country, at, basket.products, self.words)
        return visit + interests(self.rng, visit), order


def _due(heap: list[tuple[int, int, Any]], now: int) -> list[Any]:
    due: list[Any] = []
    while heap and heap[0][0] < now:
        due.append(heapq.heappop(heap)[2])
    return due
