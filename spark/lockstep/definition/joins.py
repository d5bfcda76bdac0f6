"""Two streams joined in time, as machines: each pair, or how many of a window's rows found a partner. Pure.

``0 <= right - left <= within``, both ends included. Which of two events of one instant comes first does not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lockstep.definition.keyed import Event, Row, State

# The resolution of Spark's timestamps: an end that is included has passed one such step later.
INSTANT = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def composite_key(one: str, other: str) -> str:
    """SQL for a key of two columns, which no other two values share; null where either is null."""
    return f"length({one}) || ':' || {one} || {other}"


@dataclass(frozen=True)
class IntervalJoin:
    """A left outer join: a row for each pair, and one for each left event that has found no partner when its time is over.

    Args:
        left: the stream that comes first; its events are what is kept.
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
            waiting = [*waiting, this | {"found": len(now)}]
        else:
            rows = [self.row(_event(one), event, one["found"] + 1) for one in waiting]
            waiting = [one | {"found": one["found"] + 1} for one in waiting]
            now.append(this)
        return {"waiting": waiting, "now": now}, rows

    def timer(self, state: State) -> datetime:
        ends: list[datetime] = [one["time"] + self.within for one in state["waiting"][:1]]
        ends += [one["time"] for one in state["now"][:1]]
        return min(ends) + INSTANT

    def on_timer(self, state: State, at: datetime) -> tuple[State, list[Row]]:
        over = [one for one in state["waiting"] if one["time"] + self.within < at]
        waiting, now = state["waiting"][len(over) :], [one for one in state["now"] if one["time"] >= at]
        rows = [self.row(_event(one), None, 0) for one in over if not one["found"]]
        return ({"waiting": waiting, "now": now} if waiting or now else None), rows


def _event(kept: dict[str, Any]) -> Event:
    return Event(kept["time"], kept["id"], "", kept["data"])


@dataclass(frozen=True)
class IntervalRate:
    """The same join, counted: of the left events in each tumbling window, which found which partners.

    Args:
        left: the stream that comes first.
        within: how long after a left event a right one may happen.
        size: of the windows ``[start, end)`` of the left events, aligned to the epoch.
        key: the column (of both streams) that the machine's key is made of.
        who: the column in which two partners must agree.
        slot: the column of the right event that tells one kind of partner from another.
        rows: ``(window_start, key, found)`` to output rows, when the window can find no more: for each of its left events,
            the slots that it found.
    """

    left: str
    within: timedelta
    size: timedelta
    key: str
    who: str
    slot: str
    rows: Callable[[datetime, Any, list[set[Any]]], list[Row]]

    def process(self, state: State, event: Event) -> tuple[State, list[Row]]:
        waiting = state["waiting"] if state else []
        now = [other for other in state["now"] if other[0] == event.time] if state else []
        who = event.data[self.who]
        if event.stream == self.left:
            waiting = [*waiting, [event.time, who, [slot for _, other, slot in now if other == who]]]
        else:
            slot = event.data[self.slot]
            waiting = [
                [at, one, [*found, slot]] if one == who and event.time - at <= self.within else [at, one, found]
                for at, one, found in waiting
            ]
            now.append([event.time, who, slot])
        return {"key": event.data[self.key], "waiting": waiting, "now": now}, []

    def timer(self, state: State) -> datetime:
        ends: list[datetime] = [self._closes(at) for at, _, _ in state["waiting"][:1]]
        ends += [at for at, _, _ in state["now"][:1]]
        return min(ends) + INSTANT

    def on_timer(self, state: State, at: datetime) -> tuple[State, list[Row]]:
        over = [one for one in state["waiting"] if self._closes(one[0]) < at]
        waiting, now = state["waiting"][len(over) :], [other for other in state["now"] if other[0] >= at]
        # Deadlines pass one by one, so this is one window.
        rows = self.rows(self._start(over[0][0]), state["key"], [set(found) for _, _, found in over]) if over else []
        return (state | {"waiting": waiting, "now": now} if waiting or now else None), rows

    def _start(self, at: datetime) -> datetime:
        return at - (at - _EPOCH) % self.size

    def _closes(self, at: datetime) -> datetime:
        """The last instant at which a left event of the window of ``at`` can find a partner; its last lies before the end."""
        return self._start(at) + self.size + self.within
