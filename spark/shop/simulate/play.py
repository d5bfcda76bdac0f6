"""Playing the shop: slice by slice, first the database, then the traffic, then the memory of both.

A killed play goes on with the slice that it was in; what that slice had already sent is sent again, and is a duplicate
like any other.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lockstep.contracts import CONTRACTS
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

EVENT_TOPICS = [contract.topic for contract in CONTRACTS.values() if contract.kind == "events"]
HEARTBEAT_AFTER = timedelta(minutes=1)
_WIDEST = timedelta(days=1)


class AnotherPlay(LockstepError):
    """This shop already plays something else."""


@dataclass
class Played:
    """What one run did so far: until when (UTC) of which plan, and how much it wrote."""

    plan: Plan
    until: datetime
    order_lines: int = 0
    records: Counter[str] = field(default_factory=Counter)
    finished: bool = False

    @property
    def share(self) -> float:
        """How much of the play is over, from 0 to 1."""
        return (self.until - self.plan.start) / (self.plan.end - self.plan.start)


def play(
    settings: Settings,
    wanted: dict[str, Any],
    make_sender: Callable[[Settings], Sender],
    width: timedelta = timedelta(hours=1),
    speed: float | None = None,
) -> Iterator[Played]:
    """Play the shop to its end, and report after each slice; at the end every partition gets its heartbeat.

    Args:
        wanted: ``days`` and the names of ``Amounts``, where they were asked for; the rest is as stored, or the default.
        make_sender: which client sends the traffic.
        width: how much simulated time one slice spans, at most a day; partitions never drift further apart.
        speed: simulated seconds per second; missing for as fast as it goes.

    Raises:
        AnotherPlay: the shop has begun a play that is not the wanted one.
    """
    width = min(width, _WIDEST)
    with open_shop(settings) as shop:
        raw = retail.read()
        progress = shop.progress()
        plan = progress.plan if progress else _plan(raw, wanted)
        _refuse_another(plan, wanted)
        if progress and progress.finished:
            yield Played(plan, plan.end, finished=True)
            return
        history = retail.tables(raw, plan.shift_weeks)
        ensure_topics(settings)
        progress = progress or shop.begin(plan, history)
        run = _Run(shop, Traffic(progress.plan, history), GroundTruth(settings, EVENT_TOPICS), progress)
        with closing(make_sender(settings)) as sender:
            for start, end in run.slices(width, speed):
                yield run.play(history, sender, start, end)
        # kafka-python refuses a record without key and value, so the heartbeats always go through librdkafka.
        with closing(BulkSender(settings)) as sender:
            yield run.end(sender)


class _Run:
    """One run of a play, from where the last one stopped."""

    def __init__(self, shop: Shop, traffic: Traffic, truth: GroundTruth, progress: Progress) -> None:
        self._shop, self._traffic, self._truth = shop, traffic, truth
        self._orders_until = progress.orders_until
        self._played = Played(progress.plan, progress.traffic_until)

    def slices(self, width: timedelta, speed: float | None) -> Iterator[tuple[datetime, datetime]]:
        """The slices that are left, each when its time has come."""
        began, first = time.monotonic(), self._played.until
        for start, end in slices(first, self._played.plan.end, width):
            if speed is not None:
                # Waiting for the simulated clock is the purpose here: nothing else could be awaited.
                time.sleep(max(0.0, began + (end - first).total_seconds() / speed - time.monotonic()))
            yield start, end

    def play(self, history: retail.Retail, sender: Sender, start: datetime, end: datetime) -> Played:
        """Play one slice. Its orders may have been written by a run that was killed before its traffic was sent."""
        played = self._played
        if self._orders_until < end:
            played.order_lines += self._shop.write(played.plan, history, max(start, self._orders_until), end)
        self._send(sender, self._traffic.between(start, end))
        self._shop.traffic_sent(end)
        played.until = end
        return played

    def end(self, sender: Sender) -> Played:
        """Say in every partition that the log has passed the play's end."""
        played = self._played
        self._send(sender, heartbeats(EVENT_TOPICS, milliseconds(played.plan.end + HEARTBEAT_AFTER)))
        self._shop.traffic_sent(played.plan.end, finished=True)
        played.finished = True
        return played

    def _send(self, sender: Sender, records: list[Record]) -> None:
        if records:
            known = self._truth.add(sender.send(records))
            self._played.records.update(record.topic for record in known)


def slices(start: datetime, end: datetime, width: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Adjoining slices from ``start`` to ``end``; each but the last ends at a multiple of ``width`` since the epoch."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    while start < end:
        following = min(start + width - (start - epoch) % width, end)
        yield start, following
        start = following


def _plan(raw: Any, wanted: dict[str, Any]) -> Plan:
    amounts = Amounts(**{name: value for name, value in wanted.items() if name != "days"})
    return Plan.make(raw, wanted.get("days", 28), amounts, datetime.now(UTC).date())


def _refuse_another(plan: Plan, wanted: dict[str, Any]) -> None:
    stored = {"days": plan.days} | plan.amounts.model_dump()
    for name, value in wanted.items():
        if stored[name] != value:
            raise AnotherPlay(
                f"this shop has begun a play with {name}={stored[name]}, and {name}={value} was asked for; run "
                "`lockstep simulate` without it to go on, or `lockstep reset` to start anew"
            )
