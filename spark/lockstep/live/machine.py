"""Run a keyed view's state machines inside Spark: state and waiting events are in the state store, timers are in event time."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from lockstep.definition import states
from lockstep.definition.events import COLUMNS, event, time_of
from lockstep.definition.keyed import Event, Keyed, advance, in_log_order
from lockstep.definition.view import EPOCH

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

_COLUMNS = tuple(name for name in COLUMNS if name != "_key")
NEW: dict[str, Any] = {"state": None, "revision": 0, "seen": {}}


class Machine(StatefulProcessor):
    """Process a key's events in the order of their times, and its tables' changes as they come.

    An event waits until the watermark says that no earlier event can still be on time. A change of a table is processed at
    once, unless a newer change of the same row was processed before.

    State per key: ``pending`` has the events that wait, each a JSON object with the columns of
    :data:`~lockstep.definition.events.COLUMNS`. ``machine`` is a JSON object with the view's ``state``, the ``revision`` of its
    last row, and ``seen``: the position of the newest change of each row of a table, by stream and id.
    """

    def __init__(self, view: Keyed) -> None:
        self.view = view

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self.handle = handle
        self.pending = handle.getListState("pending", "event STRING")
        self.machine = handle.getValueState("machine", "machine STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        arrived = [{name: row[name] for name in _COLUMNS} for row in rows]
        waiting = [row for row in arrived if row["_position"] is None]
        changes = in_log_order(event(row) for row in arrived if row["_position"] is not None)
        if waiting:
            self.pending.appendList([(states.dumps(row),) for row in waiting])
            self._register_timer(_earliest(waiting))
        if changes:
            yield from self._run(changes, None)

    def handleExpiredTimer(
        self,
        key: Any,  # noqa: ARG002
        timerValues: "TimerValues",
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: ARG002
    ) -> Iterator[Row]:
        until = EPOCH + timedelta(milliseconds=timerValues.getCurrentWatermarkInMs()) - self.view.limit
        waiting = [states.loads(text) for (text,) in self.pending.get()] if self.pending.exists() else []
        later = [row for row in waiting if time_of(row) >= until]
        # An event that came twice is one.
        due = sorted({(e.time, e.stream, e.id): e for e in map(event, waiting) if e.time < until}.values())
        if due:
            self.pending.put([(states.dumps(row),) for row in later]) if later else self.pending.clear()
        if later:
            self._register_timer(_earliest(later))
        yield from self._run(due, until)

    def close(self) -> None:
        """There is nothing to close: all state is in the state store."""

    def _run(self, events: list[Event], until: datetime | None) -> Iterator[Row]:
        stored = self.machine.get()
        machine = states.loads(stored[0]) if stored else NEW | {"seen": {}}
        state, rows = advance(self.view, machine["state"], _newer(machine["seen"], events), until)
        machine |= {"state": state, "revision": machine["revision"] + len(rows)}
        if state is None and not machine["seen"] and not self.view.upserts:
            self.machine.clear()
        else:
            self.machine.update((states.dumps(machine),))
        timer = self.view.timer(state) if state is not None else None
        if timer:
            self._register_timer(timer)
        first = machine["revision"] - len(rows) + 1
        for revision, row in enumerate(rows, first):
            yield Row(**{"at": row["at"], **{n: row.get(n) for n in self.view.columns}, "_revision": revision})

    def _register_timer(self, instant: datetime) -> None:
        """Ask Spark for a call when no event up to the instant can still be on time."""
        due = (instant + self.view.limit - EPOCH) // timedelta(milliseconds=1)
        self.handle.registerTimer(due + 1)


def _newer(seen: dict[str, dict[str, str]], events: list[Event]) -> Iterator[Event]:
    """Leave out changes that are not newer than the newest ``seen`` change of their row, and write the others into ``seen``."""
    for one in events:
        if one.position is not None:
            newest = seen.setdefault(one.stream, {})
            if one.position <= newest.get(one.id, ""):
                continue
            newest[one.id] = one.position
        yield one


def _earliest(rows: list[dict[str, Any]]) -> datetime:
    return min(map(time_of, rows))
