"""Run the machines of keyed views inside Spark, those of all views of a job in one stateful operator.

State and waiting events are in the state store, timers are in event time. A key is the label of a view and a key of the view.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from lockstep.definition import states
from lockstep.definition.events import COLUMNS, event, time_of
from lockstep.definition.keyed import Event, Keyed, advance, in_log_order
from lockstep.definition.view import EPOCH
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

KEY = ("_view", "_key")
# What the operator gives: the view's label, a row of it as JSON (see :mod:`~lockstep.definition.states`), and its revision.
OUTPUT = {"_view": "STRING", "_row": "STRING", "_revision": "BIGINT"}
_COLUMNS = tuple(name for name in COLUMNS if name not in KEY)
NEW: dict[str, Any] = {"state": None, "revision": 0, "seen": {}}


class MachineFailed(LockstepError):
    """The code of a view raised an error."""


class Machines(StatefulProcessor):
    """Process a key's events in the order of their times, and its tables' changes as they come.

    An event waits until the watermark says that no earlier event can still be on time. A change of a table is processed at
    once, unless a newer change of the same row was processed before.

    A view that has left the job gets no events any more. What the state still has of it is dropped when its timers come.

    Args:
        views: by label.

    State per key: ``pending`` has the events that wait, each a JSON object with the columns of
    :data:`~lockstep.definition.events.COLUMNS`. ``machine`` is a JSON object with the view's ``state``, the ``revision`` of its
    last row, and ``seen``: the position of the newest change of each row of a table, by stream and id.
    """

    def __init__(self, views: Mapping[str, Keyed]) -> None:
        self.views = views

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self.handle = handle
        self.pending = handle.getListState("pending", "event STRING")
        self.machine = handle.getValueState("machine", "machine STRING")

    # Spark calls with names, so the arguments must have these.
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        label, view = key[0], self.views[key[0]]
        arrived = [{name: row[name] for name in _COLUMNS} for row in rows]
        waiting = [row for row in arrived if row["_position"] is None]
        changes = in_log_order(event(row) for row in arrived if row["_position"] is not None)
        if waiting:
            self.pending.appendList([(states.dumps(row),) for row in waiting])
            self._register_timer(view, _earliest(waiting))
        if changes:
            yield from self._run(label, view, changes, None)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: "TimerValues",
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: ARG002
    ) -> Iterator[Row]:
        label, view = key[0], self.views.get(key[0])
        if view is None:
            self.pending.clear()
            self.machine.clear()
            return
        until = EPOCH + timedelta(milliseconds=timerValues.getCurrentWatermarkInMs()) - view.limit
        waiting = [states.loads(text) for (text,) in self.pending.get()] if self.pending.exists() else []
        later = [row for row in waiting if time_of(row) >= until]
        # An event that came twice is one.
        due = sorted({(e.time, e.stream, e.id): e for e in map(event, waiting) if e.time < until}.values())
        if due:
            self.pending.put([(states.dumps(row),) for row in later]) if later else self.pending.clear()
        if later:
            self._register_timer(view, _earliest(later))
        yield from self._run(label, view, due, until)

    def close(self) -> None:
        """There is nothing to close: all state is in the state store."""

    def _run(self, label: str, view: Keyed, events: list[Event], until: datetime | None) -> Iterator[Row]:
        stored = self.machine.get()
        machine = states.loads(stored[0]) if stored else NEW | {"seen": {}}
        try:
            state, rows = advance(view, machine["state"], _newer(machine["seen"], events), until)
            timer = view.timer(state) if state is not None else None
        except Exception as error:
            raise MachineFailed(failure(view.name, error)) from error
        machine |= {"state": state, "revision": machine["revision"] + len(rows)}
        if state is None and not machine["seen"] and not view.upserts:
            self.machine.clear()
        else:
            self.machine.update((states.dumps(machine),))
        if timer:
            self._register_timer(view, timer)
        first = machine["revision"] - len(rows) + 1
        for revision, row in enumerate(rows, first):
            yield Row(_view=label, _row=states.dumps(row), _revision=revision)

    def _register_timer(self, view: Keyed, instant: datetime) -> None:
        """Ask Spark for a call when no event up to the instant can still be on time."""
        due = (instant + view.limit - EPOCH) // timedelta(milliseconds=1)
        self.handle.registerTimer(due + 1)


def failure(view: str, error: Exception) -> str:
    """The message of a view that failed. :func:`found_failure` finds it in Spark's report of it."""
    return f"the machine of view {view} failed: {type(error).__name__}: {error}"


def found_failure(report: str) -> tuple[str, str] | None:
    """The view whose code failed, and its message, in the text of a query's error; None if it was something else."""
    match = re.search(r"the machine of view (\w+) failed: [^\n]*", report)
    return (match[1], match[0]) if match else None


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
