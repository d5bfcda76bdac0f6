"""Keep the shop open: go on in real time after the simulated history, until somebody stops it."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from lockstep.errors import LockstepError
from lockstep.kafka_clients import ensure_topics
from lockstep.settings import Settings
from shop.simulate import retail
from shop.simulate.plan import Amounts
from shop.simulate.producer import Acknowledged, BulkSender
from shop.simulate.real_time import Order, RealTime
from shop.simulate.shop import open_shop
from shop.simulate.traffic import baskets, milliseconds, search_words

# How often what is due is sent: below the time in which anybody sees it.
_STEP_SECONDS = 0.25
# The stock of customers and orders to draw from.
_DRAWN_FROM = timedelta(days=28)
_CHANGES_EVERY = timedelta(seconds=20)
_NOWHERE = np.array([], dtype=int)


class NoHistory(LockstepError):
    """The shop has no history yet, so there are no customers and products."""


@dataclass(frozen=True)
class Pace:
    """How much happens in real time.

    Args:
        rate: records a second on average, in the topics of the traffic and of the captured tables together.
        burst: in the first ten seconds of each minute, this many times as many visits begin.
        amounts: the names of ``Amounts`` that differ from those of the history.
    """

    rate: float
    burst: float
    amounts: Mapping[str, Any]


@dataclass
class Sent:
    """What has been sent since the shop was opened, and the records of the last step."""

    records: Counter[str] = field(default_factory=Counter)
    orders: int = 0
    last: list[Acknowledged] = field(default_factory=list)


def keep_open(settings: Settings, pace: Pace, stopping: threading.Event) -> Iterator[Sent]:
    """Send traffic and place orders as they are due, and report after each step, until ``stopping`` is set.

    Raises:
        NoHistory: no simulation was finished in this shop.
        NotAcknowledged, ShopUnavailable: the broker or the database did not take what is due. What follows has not been sent.
    """
    with open_shop(settings) as shop, closing(BulkSender(settings)) as sender:
        progress = shop.progress()
        if progress is None or not progress.finished:
            raise NoHistory("the shop has no finished history; run `lockstep simulate` first")
        ensure_topics(settings)
        history, end = retail.tables(retail.read(), progress.plan.shift_weeks), progress.plan.end
        # Not seeded: a shop that is opened again must not send the events of its last opening.
        rng, opened = Random(), datetime.now(UTC)  # noqa: S311 - traffic, not secrets
        amounts = Amounts(**progress.plan.amounts.model_dump() | dict(pace.amounts))
        drawn_from, words = baskets(history, end - _DRAWN_FROM, end), search_words(history.products)
        traffic = RealTime(rng, drawn_from, words, amounts, pace.rate, pace.burst, milliseconds(opened))
        placed, lines = Templates(history.orders), Templates(history.lines)
        sent, changed = Sent(), opened
        while not stopping.wait(_STEP_SECONDS):
            now = datetime.now(UTC)
            due = traffic.until(milliseconds(now))
            if due.orders:
                shop.trade(placed.of(due.orders), lines.of(due.orders))
            if now - changed >= _CHANGES_EVERY:
                shop.change_a_little(rng, history, now)
                changed = now
            sent.last = sender.send(due.records)
            sent.orders += len(due.orders)
            sent.records.update(record.topic for record in sent.last)
            yield sent


class Templates:
    """The rows of a table of the history by their order: one look-up for each new order, however long the history is."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows, self._places = rows, rows.groupby("order_id").indices

    def of(self, orders: list[Order]) -> pd.DataFrame:
        """The rows of the orders that were drawn, under the new orders' ids and times."""
        places = [self._places.get(order.template, _NOWHERE) for order in orders]
        numbers = [len(of_order) for of_order in places]
        times = pd.to_datetime([order.ordered_at for order in orders], unit="ms", utc=True)
        rows = self._rows.iloc[np.concatenate(places)].reset_index(drop=True)
        ids = np.repeat([order.order_id for order in orders], numbers)
        return rows.assign(order_id=ids, ordered_at=times.repeat(numbers))
