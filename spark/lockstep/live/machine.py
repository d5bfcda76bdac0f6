"""Run the machines of keyed views inside Spark, those of all views of a job in one stateful operator.

State and waiting events are in the state store, timers are in event time. A key is the label of a view and a key of the view.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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


class MachineFailed(LockstepError):
    """The code of a view raised an error."""


@dataclass
class Machine:
    """What the state store has of one key, as JSON. One value, because each call of the state store costs more than the rows.

    Args:
        state: the view's.
        revision: of its last row.
        seen: the position of the newest change of each row of a table, by stream and id.
        pending: the events that wait, each with the columns of :data:`~lockstep.definition.events.COLUMNS`.
        due: the earliest timer that Spark has of the key (milliseconds, UTC).
    """

    state: Any = None
    revision: int = 0
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    due: int | None = None

    def take(self, until: datetime) -> list[Event]:
        """Take out the pending events before an instant, in order. An event that came twice is one."""
        due = {(e.time, e.stream, e.id): e for e in map(event, self.pending) if e.time < until}
        self.pending = [row for row in self.pending if time_of(row) >= until]
        return sorted(due.values())

    def run(self, view: Keyed, events: list[Event], until: datetime | None) -> list[dict[str, Any]]:
        """Process the events, and the timers before ``until``; the new rows.

        Raises:
            MachineFailed: the view's code failed.
        """
        with _failing(view):
            self.state, rows = advance(view, self.state, _newer(self.seen, events), until)
        self.revision += len(rows)
        return rows

    def next_timer(self, view: Keyed) -> int | None:
        """When no earlier event can still be on time for the first thing that waits (milliseconds, UTC); None: nothing waits."""
        with _failing(view):
            timer = view.timer(self.state) if self.state is not None else None
        instants = [*map(time_of, self.pending), *([timer] if timer else [])]
        if not instants:
            return None
        return (min(instants) + view.limit - EPOCH) // timedelta(milliseconds=1) + 1

    def is_over(self, view: Keyed) -> bool:
        """Whether nothing of it has to be kept. The rows of a view that upserts are numbered for ever."""
        return self.state is None and not self.seen and not self.pending and not view.upserts


class Machines(StatefulProcessor):
    """Process a key's events in the order of their times, and its tables' changes as they come.

    An event waits until the watermark says that no earlier event can still be on time. A change of a table is processed at
    once, unless a newer change of the same row was processed before.

    A view that has left the job gets no events any more. What the state still has of it is dropped when its timers come.

    Args:
        views: by label.
    """

    def __init__(self, views: Mapping[str, Keyed]) -> None:
        self.views = views

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self.handle = handle
        self.stored = handle.getValueState("machine", "machine STRING")

    # Spark calls with names, so the arguments must have these.
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        view, machine = self.views[key[0]], self._load()
        arrived = [{name: row[name] for name in _COLUMNS} for row in rows]
        machine.pending += [row for row in arrived if row["_position"] is None]
        changes = in_log_order(event(row) for row in arrived if row["_position"] is not None)
        new = machine.run(view, changes, None) if changes else []
        self._store(view, machine)
        return _rows(key[0], machine, new)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: "TimerValues",
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: ARG002
    ) -> Iterator[Row]:
        view = self.views.get(key[0])
        if view is None:
            self.stored.clear()
            return iter(())
        machine = self._load()
        # Spark has removed the timer that has come.
        machine.due = None
        until = EPOCH + timedelta(milliseconds=timerValues.getCurrentWatermarkInMs()) - view.limit
        new = machine.run(view, machine.take(until), until)
        self._store(view, machine)
        return _rows(key[0], machine, new)

    def close(self) -> None:
        """There is nothing to close: all state is in the state store."""

    def _load(self) -> Machine:
        stored = self.stored.get()
        return Machine(**states.loads(stored[0])) if stored else Machine()

    def _store(self, view: Keyed, machine: Machine) -> None:
        """Write the machine, and ask Spark for a call when its next timer comes. An earlier call than needed does no harm."""
        timer = machine.next_timer(view)
        if timer is not None and (machine.due is None or timer < machine.due):
            self.handle.registerTimer(timer)
            machine.due = timer
        if machine.is_over(view):
            self.stored.clear()
        else:
            self.stored.update((states.dumps(vars(machine)),))


def _rows(label: str, machine: Machine, rows: list[dict[str, Any]]) -> Iterator[Row]:
    """The machine's newest rows, as :data:`OUTPUT`."""
    first = machine.revision - len(rows) + 1
    return (Row(_view=label, _row=states.dumps(row), _revision=n) for n, row in enumerate(rows, first))


@contextmanager
def _failing(view: Keyed) -> Iterator[None]:
    """Say of which view the code is that failed."""
    try:
        yield
    except Exception as error:
        raise MachineFailed(failure(view.name, error)) from error


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
