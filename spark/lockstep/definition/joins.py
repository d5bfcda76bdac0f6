"""Interval joins of two streams, as machines: each pair, or how many of a window's rows found a partner. Pure.

``0 <= right - left <= within``, both ends included. Which of two events of one instant comes first does not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from lockstep.definition.keyed import Event, Row, State
from lockstep.definition.states import from_micros, micros
from lockstep.definition.view import EPOCH, MICROSECOND


def composite_key(first: str, second: str) -> str:
    """SQL for a key of two columns: two pairs of values never have the same key. It is null where either column is null."""
    return f"length({first}) || ':' || {first} || {second}"


@dataclass(frozen=True)
class IntervalJoin:
    """A left outer join: a row for each pair, and a row for each left event that has found no partner when its time is over.

    Args:
        left: the stream whose events come first. They are kept until their time is over.
        within: how long after a left event a right one may happen.
        row: ``(left, right, number)`` to an output row; the partners of a left event are numbered from 1 in the order in
            which they happened, and ``(left, None, 0)`` has none.
    """

    left: str
    within: timedelta
    row: Callable[[Event, Event | None, int], Row]

    def process(self, state: State, event: Event) -> tuple[State, list[Row]]:
        waiting = state["waiting"] if state else []
        now = [other for other in state["now"] if other["time"] == event.time] if state else []
        this = {"time": event.time, "id": event.id, "data": event.data}
        if event.stream == self.left:
            rows = [self.row(event, _event(other), number) for number, other in enumerate(now, 1)]
            waiting = [*waiting, this | {"partners": len(now)}]
        else:
            rows = [self.row(_event(left), event, left["partners"] + 1) for left in waiting]
            waiting = [left | {"partners": left["partners"] + 1} for left in waiting]
            now.append(this)
        return {"waiting": waiting, "now": now}, rows

    def timer(self, state: State) -> datetime:
        ends: list[datetime] = [left["time"] + self.within for left in state["waiting"][:1]]
        ends += [right["time"] for right in state["now"][:1]]
        return min(ends) + MICROSECOND

    def on_timer(self, state: State, at: datetime) -> tuple[State, list[Row]]:
        over = [left for left in state["waiting"] if left["time"] + self.within < at]
        waiting, now = state["waiting"][len(over) :], [right for right in state["now"] if right["time"] >= at]
        rows = [self.row(_event(left), None, 0) for left in over if not left["partners"]]
        return ({"waiting": waiting, "now": now} if waiting or now else None), rows


def _event(saved: dict[str, Any]) -> Event:
    return Event(saved["time"], saved["id"], "", saved["data"])


@dataclass(frozen=True)
class IntervalRate:
    """An interval join, counted: which of the left events in each tumbling window found which partners.

    Args:
        left: the stream that comes first.
        within: how long after a left event a right one may happen.
        size: of the windows ``[start, end)`` of the left events, aligned to the epoch.
        key: the column of both streams that is the machine's key.
        who: the column that must be equal in two partners.
        slot: the column of the right event by which partners are counted apart.
        rows: ``(window_start, key, found)`` to output rows, when no event of the window can find another partner. ``found`` has,
            for each left event, the slots of its partners.
    """

    left: str
    within: timedelta
    size: timedelta
    key: str
    who: str
    slot: str
    rows: Callable[[datetime, Any, list[set[Any]]], list[Row]]

    def process(self, state: State, event: Event) -> tuple[State, list[Row]]:
        at, who = micros(event.time), event.data[self.who]
        waiting = state["waiting"] if state else []
        now = [other for other in state["now"] if other[0] == at] if state else []
        # What waits is in the order of time, and changed in place: a key that is busy has thousands of left events.
        if event.stream == self.left:
            waiting.append([at, who, [slot for _, other, slot in now if other == who]])
        else:
            slot, since = event.data[self.slot], micros(event.time - self.within)
            for _, other, found in takewhile(lambda left: left[0] >= since, reversed(waiting)):
                if other == who:
                    found.append(slot)
            now.append([at, who, slot])
        return {"key": event.data[self.key], "waiting": waiting, "now": now}, []

    def timer(self, state: State) -> datetime:
        ends: list[datetime] = [self._closes(at) for at, _, _ in state["waiting"][:1]]
        ends += [from_micros(at) for at, _, _ in state["now"][:1]]
        return min(ends) + MICROSECOND

    def on_timer(self, state: State, at: datetime) -> tuple[State, list[Row]]:
        over = [*takewhile(lambda left: self._closes(left[0]) < at, state["waiting"])]
        waiting, now = state["waiting"][len(over) :], [other for other in state["now"] if from_micros(other[0]) >= at]
        # Timers come one by one, so these events are of one window.
        rows = self.rows(self._start(over[0][0]), state["key"], [set(found) for _, _, found in over]) if over else []
        return (state | {"waiting": waiting, "now": now} if waiting or now else None), rows

    def _start(self, at: int) -> datetime:
        """The start of the window of an instant (microseconds since the epoch)."""
        time = from_micros(at)
        return time - (time - EPOCH) % self.size

    def _closes(self, at: int) -> datetime:
        """The last instant at which a left event of the window of ``at`` (microseconds) can find a partner."""
        return self._start(at) + self.size + self.within
