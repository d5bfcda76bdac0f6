"""Run the machines of keyed views inside Spark, those of all views of a job in one stateful operator.

The operator has one key of Spark's for each state partition, because each call of the state store costs more than a row: what
waits is read and written for all machines together (:mod:`~lockstep.live.timing_wheel`), and a machine once for what is due. A
machine is found by its view's label and a key of the view.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from lockstep.definition import states
from lockstep.definition.events import COLUMNS, event, micros
from lockstep.definition.keyed import Event, Keyed, in_log_order
from lockstep.definition.machine import Machine
from lockstep.definition.view import EPOCH, MICROSECOND
from lockstep.live.state_map import StateMap
from lockstep.live.timing_wheel import Entry, TimingWheel

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

# What a machine is found by.
KEY = ("_view", "_key")
# The state variable with the machines.
MACHINES = "machines"
# What the operator gives: the view's label, a row of it as JSON (see :mod:`~lockstep.definition.states`), and its revision.
OUTPUT = {"_view": "STRING", "_row": "STRING", "_revision": "BIGINT"}
_COLUMNS = (*KEY, *(name for name in COLUMNS if name not in KEY))


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
        key = ", ".join(f"{name} STRING" for name in KEY)
        self.machines = StateMap(handle.getMapState(MACHINES, key, "machine STRING"))
        self.waiting = TimingWheel(handle, self._due)

    # Spark calls with names, so the arguments must have these.
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        arrived = [{name: row[name] for name in _COLUMNS} for row in rows]
        wait = [entry for entry in arrived if entry["_position"] is None]
        changed = _by_machine(entry for entry in arrived if entry["_position"] is not None)
        found = self._run_all({name: in_log_order(map(event, of)) for name, of in changed.items()}, None, wait)
        self.waiting.add(wait, timerValues.getCurrentWatermarkInMs())
        return iter(found)

    def handleExpiredTimer(
        self,
        key: Any,  # noqa: ARG002
        timerValues: "TimerValues",
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: ARG002
    ) -> Iterator[Row]:
        now = timerValues.getCurrentWatermarkInMs()
        timers: list[Entry] = []
        due = _by_machine(self.waiting.take(now))
        self.machines.write({name: None for name in due if name[0] not in self.views})
        found = self._run_all({name: _once(of) for name, of in due.items() if name[0] in self.views}, now, timers)
        self.waiting.add(timers, now)
        return iter(found)

    def close(self) -> None:
        """There is nothing to close: all state is in the state store."""

    def _due(self, entry: Entry) -> int:
        """When no earlier event can still be on time (milliseconds, UTC). An entry of a view that has left is due at once."""
        view = self.views.get(entry["_view"])
        return (entry["_time"] + view.limit // MICROSECOND) // 1000 + 1 if view else 0

    def _run_all(self, events: Mapping["Name", list[Event]], now: int | None, timers: list[Entry]) -> list[Row]:
        """Give machines their events; their new rows. The next timer of each goes to ``timers``, unless an earlier one waits.

        Args:
            now: the watermark, if the machines' timers may have come (milliseconds, UTC).
        """
        stored = self.machines.read(events)
        found: list[Row] = []
        after: dict[Name, str | None] = {}
        for name, of_machine in events.items():
            machine = Machine.load(stored.get(name))
            found += self._run(name, machine, of_machine, now, timers)
            if not machine.is_over(self.views[name[0]]):
                after[name] = machine.dump()
            elif name in stored:
                after[name] = None
        self.machines.write(after)
        return found

    def _run(
        self, name: "Name", machine: Machine, events: list[Event], now: int | None, timers: list[Entry]
    ) -> Iterator[Row]:
        label, key = name
        view = self.views[label]
        until = EPOCH + timedelta(milliseconds=now) - view.limit if now is not None else None
        rows = machine.run(view, events, until)
        if now is not None and machine.due is not None and machine.due <= now:
            machine.due = None
        timer = machine.next_timer(view)
        if timer is not None:
            entry = _timer(label, key, timer)
            due = self._due(entry)
            if machine.due is None or due < machine.due:
                timers.append(entry)
                machine.due = due
        return _rows(label, machine, rows)


# The label of a view, and a key of it.
Name = tuple[str, str]


def _by_machine(entries: Iterable[Entry]) -> dict[Name, list[Entry]]:
    found: dict[Name, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry["_view"], entry["_key"]].append(entry)
    return found


def _timer(label: str, key: str, at: datetime) -> Entry:
    """An entry that calls a machine at an instant, with no event."""
    return {"_view": label, "_key": key, "_time": micros(at)}


def _once(entries: list[Entry]) -> list[Event]:
    """The events among the entries, in order. An event that came twice is one."""
    events = map(event, (entry for entry in entries if "_id" in entry))
    return sorted({(e.time, e.stream, e.id): e for e in events}.values())


def _rows(label: str, machine: Machine, rows: list[dict[str, Any]]) -> Iterator[Row]:
    """The machine's newest rows, as :data:`OUTPUT`."""
    first = machine.revision - len(rows) + 1
    return (Row(_view=label, _row=states.dumps(row), _revision=n) for n, row in enumerate(rows, first))
