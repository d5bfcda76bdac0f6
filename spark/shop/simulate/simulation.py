"""The simulation of the shop, slice by slice: first the database, then the traffic, then the record that both are done.

A simulation that was killed goes on with the slice that it was in. Records of that slice may then be sent twice; they are
duplicates like any others.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lockstep.contracts import of_kind
from lockstep.errors import LockstepError
from lockstep.kafka_clients import ensure_topics
from lockstep.settings import Settings
from shop.simulate import retail
from shop.simulate.disturb import Record
from shop.simulate.ground_truth import GroundTruth
from shop.simulate.plan import Amounts, Plan
from shop.simulate.producer import BulkSender, Sender, heartbeats
from shop.simulate.shop import Progress, Shop, open_shop
from shop.simulate.traffic import Traffic, milliseconds

EVENT_TOPICS = [contract.topic for contract in of_kind("events").values()]
# Longer than any of the shop's views waits for late rows (10 minutes), so that their last windows are closed.
HEARTBEAT_AFTER = timedelta(minutes=15)
# Traffic is made by day, and its late events arrive up to a day later.
_WIDEST = timedelta(days=1)


class OtherSimulation(LockstepError):
    """This shop has begun another simulation."""


@dataclass
class RunStatus:
    """How far one run has come with which plan (``until``, UTC), and how much it has written."""

    plan: Plan
    until: datetime
    order_lines: int = 0
    records: Counter[str] = field(default_factory=Counter)
    finished: bool = False

    @property
    def share(self) -> float:
        """How much of the simulated time is over, from 0 to 1."""
        return (self.until - self.plan.start) / (self.plan.end - self.plan.start)


def run_simulation(
    settings: Settings,
    wanted: dict[str, Any],
    make_sender: Callable[[Settings], Sender],
    width: timedelta = timedelta(hours=1),
    speed: float | None = None,
) -> Iterator[RunStatus]:
    """Simulate the shop to the end of its plan, and report after each slice. At the end every partition gets a heartbeat.

    Args:
        wanted: ``days`` and the names of ``Amounts``, if they were given; the others are as stored, or have their default.
        make_sender: which client sends the traffic.
        width: how much simulated time a slice spans, at most a day. Partitions never drift further apart than that.
        speed: simulated seconds per second; None for as fast as possible.

    Raises:
        OtherSimulation: the shop has begun a simulation with another plan.
    """
    width = min(width, _WIDEST)
    with open_shop(settings) as shop:
        raw = retail.read()
        progress = shop.progress()
        plan = progress.plan if progress else new_plan(raw, wanted, datetime.now(UTC))
        _refuse_other_plan(plan, wanted)
        if progress and progress.finished:
            yield RunStatus(plan, plan.end, finished=True)
            return
        history = retail.tables(raw, plan.shift_weeks)
        ensure_topics(settings)
        progress = progress or shop.begin(plan, history)
        run = _Run(shop, Traffic(progress.plan, history), GroundTruth(settings, EVENT_TOPICS), progress)
        with closing(make_sender(settings)) as sender:
            for start, end in run.slices(width, speed):
                yield run.simulate(history, sender, start, end)
        # kafka-python refuses a record without key and value, so the heartbeats always go through librdkafka.
        with closing(BulkSender(settings)) as sender:
            yield run.end(sender)


def is_finished(settings: Settings) -> bool:
    """Whether this shop has a simulation that has come to its end."""
    with open_shop(settings) as shop:
        progress = shop.progress()
    return progress is not None and progress.finished


class _Run:
    """One run of the simulation, from where the last run stopped."""

    def __init__(self, shop: Shop, traffic: Traffic, truth: GroundTruth, progress: Progress) -> None:
        self._shop, self._traffic, self._truth = shop, traffic, truth
        self._orders_until = progress.orders_until
        self._status = RunStatus(progress.plan, progress.traffic_until)

    def slices(self, width: timedelta, speed: float | None) -> Iterator[tuple[datetime, datetime]]:
        """The slices that are left; with ``speed``, each is given when its time has come."""
        began, first = time.monotonic(), self._status.until
        for start, end in slices(first, self._status.plan.end, width):
            if speed is not None:
                # The purpose is to wait for the simulated clock: there is no condition to wait for.
                time.sleep(max(0.0, began + (end - first).total_seconds() / speed - time.monotonic()))
            yield start, end

    def simulate(self, history: retail.Retail, sender: Sender, start: datetime, end: datetime) -> RunStatus:
        """Simulate one slice. A run that was killed may have written its orders, but not sent its traffic."""
        status = self._status
        if self._orders_until < end:
            status.order_lines += self._shop.write(status.plan, history, max(start, self._orders_until), end)
        self._send(sender, self._traffic.between(start, end))
        self._shop.traffic_sent(end)
        status.until = end
        return status

    def end(self, sender: Sender) -> RunStatus:
        """Send a heartbeat to every partition: its log has passed the end of the simulation."""
        status = self._status
        self._send(sender, heartbeats(EVENT_TOPICS, milliseconds(status.plan.end + HEARTBEAT_AFTER)))
        self._shop.traffic_sent(status.plan.end, finished=True)
        status.finished = True
        return status

    def _send(self, sender: Sender, records: list[Record]) -> None:
        if records:
            acknowledged = self._truth.add(sender.send(records))
            self._status.records.update(record.topic for record in acknowledged)


def slices(start: datetime, end: datetime, width: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Adjoining slices from ``start`` to ``end``; each but the last ends at a multiple of ``width`` since the epoch."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    while start < end:
        following = min(start + width - (start - epoch) % width, end)
        yield start, following
        start = following


def new_plan(raw: Any, wanted: dict[str, Any], now: datetime) -> Plan:
    """The plan of a simulation that begins now. Its last heartbeats are not in the future: the broker would refuse them."""
    amounts = Amounts(**{name: value for name, value in wanted.items() if name != "days"})
    return Plan.make(raw, wanted.get("days", 28), amounts, (now - HEARTBEAT_AFTER).date())


def _refuse_other_plan(plan: Plan, wanted: dict[str, Any]) -> None:
    stored = {"days": plan.days} | plan.amounts.model_dump()
    for name, value in wanted.items():
        if stored[name] != value:
            raise OtherSimulation(
                f"this shop has begun a simulation with {name}={stored[name]}, but {name}={value} was given. Run "
                "`lockstep simulate` without it to go on, or `lockstep reset` to begin again."
            )
