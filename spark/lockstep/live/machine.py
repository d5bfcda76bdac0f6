"""Run the machines of keyed views inside Spark, those of all views of a job in one stateful operator.

The operator has one key of Spark's for each state partition, because each call of the state store costs more than a row: what
waits is read and written for all machines together (:mod:`~lockstep.live.timing_wheel`), and a machine once for what is due, with
the buckets of its map state that it needs. A machine is found by its view's label and a key of the view.

Spark's own watermark is not used: it counts from the next micro-batch on, drops rows by itself, and knows no partitions. So every
record reaches the operator, if only to tell how far its partition has come (:mod:`~lockstep.live.watermarks`).
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from lockstep.definition import states
from lockstep.definition.events import LIVE_COLUMNS, event
from lockstep.definition.keyed import Event, Keyed, in_log_order
from lockstep.definition.machine import Machine
from lockstep.definition.states import micros
from lockstep.definition.view import EPOCH, MICROSECOND
from lockstep.live.state_map import StateMap
from lockstep.live.timing_wheel import Clocks, Entry, TimingWheel
from lockstep.live.watermarks import EventStream, Watermarks, clock_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

# What a machine is found by.
KEY = ("_view", "_key")
# The state variables with the machines, and with the buckets of their map state.
MACHINES = "machines"
BUCKETS = "buckets"
# What the operator gives: the view's label, a row of it as JSON (see :mod:`~lockstep.definition.states`), and its revision. The
# row without a label has what the clocks show at the end of the micro-batch.
OUTPUT = {"_view": "STRING", "_row": "STRING", "_revision": "BIGINT"}
# What the operator begins with: a view's label, until when its machines have processed events (microseconds, UTC), and those of
# them that a state partition has, as a JSON array of the columns of ``saved_machines.SCHEMA`` without ``_timer``.
INITIAL = {"_label": "STRING", "_until": "BIGINT", "_machines": "STRING"}
_POSITION = ("_stream", "_partition", "_offset")
# What tells how far a partition has come, and is not kept.
_OF_THE_RECORD = ("_partition", "_offset", "_timestamp")
# The label of a view, and a key of it.
Name = tuple[str, str]
BucketName = tuple[str, str, int]


class Machines(StatefulProcessor):
    """Process a key's events in the order of their times, and its tables' changes as they come.

    An event waits until the clock of its view says that no earlier event can still be on time. One that comes after that is late.
    A change of a table is processed at once, unless a newer change of the same row was processed before.

    A view that has left the job gets no events any more. What the state still has of it is dropped when it is due.

    Args:
        views: by label.
        streams: the event streams that the job reads, by name.
    """

    def __init__(self, views: Mapping[str, Keyed], streams: Mapping[str, EventStream]) -> None:
        self.views, self.streams = views, streams
        # Asked here: it depends on the contracts, and a worker of the server would have to load the project for them.
        self.clocks = {label: clock_of(view) for label, view in views.items()}
        self.upserts = {label: view.upserts for label, view in views.items()}

    def init(self, handle: "StatefulProcessorHandle") -> None:
        key = ", ".join(f"{name} STRING" for name in KEY)
        self.machines = StateMap(handle.getMapState(MACHINES, key, "machine STRING"))
        self.buckets = StateMap(handle.getMapState(BUCKETS, f"{key}, _bucket INT", "entries STRING"))
        self.waiting = TimingWheel(handle, self._due)
        self.watermarks = handle.getValueState("watermarks", "watermarks STRING")

    # Spark calls with names, so the arguments must have these.
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        arrived = _entries(rows)
        changes = _by_machine(entry for entry in arrived if entry["_position"] is not None)
        now, on_time = self._watch(sorted((e for e in arrived if e["_position"] is None), key=itemgetter(*_POSITION)))
        waiting: list[Entry] = []
        due: list[Entry] = []
        for entry in (*self.waiting.take(now), *on_time):
            clock, at = self._due(entry)
            (due if at <= now.get(clock, 0) else waiting).append(entry)
        events = _by_machine(due)
        self._remove([name for name in events if name[0] not in self.views])
        found = self._run_all(
            {
                name: [*in_log_order(map(event, changes.get(name, ()))), *_once(events.get(name, ()))]
                for name in events.keys() | changes.keys()
                if name[0] in self.views
            },
            now,
            waiting,
        )
        self.waiting.add(now, waiting)
        return iter([*found, Row(_view=None, _row=states.dumps(dict(now)), _revision=0)])

    def handleInitialState(self, key: Any, initialState: Any, timerValues: "TimerValues") -> None:  # noqa: ARG002
        """Begin with machines that have processed all events before an instant; ``initialState`` has :data:`INITIAL`."""
        label = initialState["_label"]
        watermarks = self._stored_watermarks()
        watermarks.since[label] = initialState["_until"]
        self.watermarks.update((watermarks.dump(),))
        timers: list[Entry] = []
        machines: dict[Name, str | None] = {}
        buckets: dict[BucketName, str | None] = {}
        for found in json.loads(initialState["_machines"]):
            # A state partition without any has an empty one.
            if "_bucket" in found:
                buckets[label, found["_key"], found["_bucket"]] = found["_machine"]
            elif found:
                machine = Machine.load(found["_machine"])
                self._wait((label, found["_key"]), machine, timers)
                machines[label, found["_key"]] = machine.dump()
        self.machines.write(machines)
        self.buckets.write(buckets)
        self.waiting.add({}, timers)

    def close(self) -> None:
        """There is nothing to close: all state is in the state store."""

    def _watch(self, entries: Iterable[Entry]) -> tuple[Clocks, list[Entry]]:
        """Move the watermarks on; what the clocks show then, and the events that are on time.

        Args:
            entries: in the order of the log. Those without a view only tell how far their partition has come.
        """
        watermarks = self._stored_watermarks()
        on_time: list[Entry] = []
        for entry in entries:
            partition, _, timestamp = (entry.pop(name) for name in _OF_THE_RECORD)
            passed = watermarks.after(entry["_stream"], partition, timestamp)
            if entry["_view"] is not None:
                # A partition that was added later may be behind the clock.
                passed = max(passed, watermarks.shown.get(self.clocks[entry["_view"]], 0))
                is_new = entry["_time"] >= watermarks.since.get(entry["_view"], entry["_time"])
                if is_new and passed * 1000 - entry["_time"] <= self.views[entry["_view"]].limit // MICROSECOND:
                    on_time.append(entry)
        now = watermarks.show({*self.clocks.values()})
        self.watermarks.update((watermarks.dump(),))
        return now, on_time

    def _stored_watermarks(self) -> Watermarks:
        watermarks = Watermarks(self.streams)
        if stored := self.watermarks.get():
            watermarks.load(stored[0])
        return watermarks

    def _due(self, entry: Entry) -> tuple[str, int]:
        """By which clock, and when, no earlier event can still be on time. An entry of a view that has left is due at once."""
        view = self.views.get(entry["_view"])
        if view is None:
            return "", 0
        return self.clocks[entry["_view"]], (entry["_time"] + view.limit // MICROSECOND) // 1000 + 1

    def _run_all(self, events: Mapping[Name, list[Event]], now: Clocks, timers: list[Entry]) -> list[Row]:
        """Give machines their events; their new rows. The next timer of each goes to ``timers``, unless an earlier one waits."""
        stored = self.machines.read(events)
        machines = {name: Machine.load(stored.get(name)) for name in events}
        buckets = self._needed(machines, events)
        found: list[Row] = []
        after: dict[Name, str | None] = {}
        changed: dict[BucketName, str | None] = {}
        for name, machine in machines.items():
            label, _ = name
            view, clock = self.views[label], now.get(self.clocks[label], 0)
            until = EPOCH + timedelta(milliseconds=clock) - view.limit
            rows, written = machine.run(view, events[name], until, buckets[name])
            if machine.due is not None and machine.due <= clock:
                machine.due = None
            self._wait(name, machine, timers)
            found += _rows(label, machine, rows)
            changed |= {(*name, number): text for number, text in written.items()}
            if not machine.is_over(self.upserts[label]):
                after[name] = machine.dump()
            elif name in stored:
                after[name] = None
        self.machines.write(after)
        self.buckets.write(changed)
        return found

    def _needed(
        self, machines: Mapping[Name, Machine], events: Mapping[Name, list[Event]]
    ) -> Mapping[Name, dict[int, str]]:
        """The buckets that machines need for their events."""
        found: dict[Name, dict[int, str]] = defaultdict(dict)
        names = [
            (*name, number) for name, of in machines.items() for number in of.needed(self.views[name[0]], events[name])
        ]
        for (label, key, number), text in self.buckets.read(names).items():
            found[label, key][number] = text
        return found

    def _remove(self, names: list[Name]) -> None:
        """Remove machines."""
        machines = {name: Machine.load(text) for name, text in self.machines.read(names).items()}
        self.machines.write(dict.fromkeys(machines))
        self.buckets.write({(*name, number): None for name, of in machines.items() for number in of.all_removed()})

    def _wait(self, name: Name, machine: Machine, timers: list[Entry]) -> None:
        """Let the machine be called at its next timer, unless it is called earlier anyway."""
        label, key = name
        timer = machine.next_timer(self.views[label])
        if timer is not None:
            entry = _timer(label, key, timer)
            _, due = self._due(entry)
            if machine.due is None or due < machine.due:
                timers.append(entry)
                machine.due = due


def _entries(rows: Iterator[Row]) -> list[Entry]:
    """The rows by column. To ask each row for each column by its name takes five times as long."""
    some = [*rows]
    columns = itemgetter(*map(some[0].__fields__.index, LIVE_COLUMNS)) if some else tuple
    return [dict(zip(LIVE_COLUMNS, columns(row), strict=True)) for row in some]


def _by_machine(entries: Iterable[Entry]) -> dict[Name, list[Entry]]:
    found: dict[Name, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry["_view"], entry["_key"]].append(entry)
    return found


def _timer(label: str, key: str, at: datetime) -> Entry:
    """An entry that calls a machine at an instant, with no event."""
    return {"_view": label, "_key": key, "_time": micros(at)}


def _once(entries: Iterable[Entry]) -> list[Event]:
    """The events among the entries, in order. An event that came twice is one."""
    events = map(event, (entry for entry in entries if "_id" in entry))
    return sorted({(e.time, e.stream, e.id): e for e in events}.values())


def _rows(label: str, machine: Machine, rows: list[dict[str, Any]]) -> Iterator[Row]:
    """The machine's newest rows, as :data:`OUTPUT`."""
    first = machine.revision - len(rows) + 1
    return (Row(_view=label, _row=states.dumps(row), _revision=n) for n, row in enumerate(rows, first))
