"""A streaming query as Spark runs it: offsets are written before a micro-batch, commits after it, and state in between.

The machines of keyed views and the sink are the real ones. Windowed views are restated.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from datetime import timedelta
from typing import Any

import pyarrow as pa
from tests.support.simulation import engine
from tests.support.simulation.lake import Row, Rows
from tests.support.simulation.world import Killed, World
from tests.support.state_store import Map, StateStore, Value, as_rows

from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.events import LIVE_COLUMNS
from lockstep.definition.tables import live_of
from lockstep.live.checkpoint import Batch
from lockstep.live.generation import Generation, Job
from lockstep.live.machine import Machines
from lockstep.live.sink import Sink
from lockstep.live.watermarks import EventStream

Ends = dict[str, dict[int, int]]
# The ids that a windowed view has seen, and its windows.
_Windows = tuple[set[Any], dict[Any, Any]]
_OUTPUT = pa.schema([("_view", pa.string()), ("_row", pa.string()), ("_revision", pa.int64())])
_NO_EVENT = dict.fromkeys(LIVE_COLUMNS)


class Checkpoint:
    """The files of a checkpoint: the offsets of each batch, the last finished batch, and its state."""

    def __init__(self) -> None:
        self.offsets: dict[int, Batch] = {}
        self.finished = -1
        self.state: Any = None

    def batch(self, number: int) -> Batch:
        """As :meth:`lockstep.live.checkpoint.Checkpoint.batch`."""
        return self.offsets[number]

    def first_planned(self) -> Ends:
        """As :meth:`lockstep.live.checkpoint.Checkpoint.first_planned`."""
        return self.offsets[0].offsets if 0 in self.offsets else {}

    def position(self) -> Ends:
        """As :meth:`lockstep.live.checkpoint.Checkpoint.position`."""
        return self.offsets[self.finished].offsets if self.finished >= 0 else {}


class Store(StateStore):
    """A state store that can be saved, and loaded again."""

    def __init__(self, saved: "Store | None" = None) -> None:
        super().__init__()
        self._saved = saved
        self.values: dict[str, Value] = {}
        self.of_name: dict[str, Map] = {}

    def getValueState(self, name: str, _schema: str) -> Value:
        self.values[name] = copy(self._saved.values[name]) if self._saved else Value()
        return self.values[name]

    def getMapState(self, name: str, _key_schema: str, _value_schema: str) -> Map:
        self.of_name[name] = Map()
        if self._saved:
            self.of_name[name].values = dict(self._saved.of_name[name].values)
        return self.of_name[name]

    def snapshot(self) -> "Store":
        """A copy of what it has now."""
        saved = Store(self)
        for name in self.values:
            saved.getValueState(name, "")
        for name in self.of_name:
            saved.getMapState(name, "", "")
        saved._saved = None
        return saved


class KeyedOperator:
    """The real machines over a state store."""

    def __init__(self, world: World, views: Sequence[Keyed], state: Store | None, planned: Ends) -> None:
        self._world, self._views, self._store = world, views, Store(state)
        contracts = {s: CONTRACTS[s] for view in views for s in view.streams if CONTRACTS[s].kind == "events"}
        streams = {
            name: EventStream(
                # As ``lockstep.live.query._event_stream``.
                planned.get(contract.topic) or world.kafka.partitions(contract.topic),
                _milliseconds(contract.max_out_of_orderness),
            )
            for name, contract in contracts.items()
        }
        self._machines = Machines({view.name: view for view in views}, streams)
        self._machines.init(self._store)

    def process(self, parsed: dict[str, Rows]) -> pa.Table:
        """A micro-batch's output."""
        rows = [row for stream, of in parsed.items() for row in self._inputs(stream, of)]
        # Spark brings them in any order.
        self._world.random.shuffle(rows)
        found = self._machines.handleInputRows(None, as_rows(rows), None)
        return pa.Table.from_pylist([row.asDict() for row in found], _OUTPUT)

    def state(self) -> Store:
        """What is kept."""
        return self._store.snapshot()

    def _inputs(self, stream: str, rows: Rows) -> Iterable[Row]:
        if CONTRACTS[stream].kind == "events":
            yield from ({**_NO_EVENT, "_stream": stream, **engine.of_record(row)} for row in rows)
        # Spark's side does not know the partition's watermark.
        good = Rows({**row, "_watermark": None} for row in rows if not row["_marker"] and row["_reason"] is None)
        for view in self._views:
            yield from ({**event, "_view": view.name} for event in engine.events(view, stream, good))


class WindowOperator:
    """The deduplication and the aggregation of the windowed views of a stream, in update mode."""

    def __init__(self, _world: World, views: Sequence[Windowed], state: _Windows | None, _planned: Ends) -> None:
        self._views = views
        seen, windows = state or (set(), {})
        self._seen, self._windows = {*seen}, dict(windows)

    def process(self, parsed: dict[str, Rows]) -> pa.Table:
        """The windows that have changed, as :func:`lockstep.definition.windowing.in_windows` gives them."""
        ((stream, rows),) = parsed.items()
        contract = CONTRACTS[stream]
        good = Rows(row for row in rows if not row["_marker"] and row["_reason"] is None)
        good = good.where(" OR ".join(f"({view.on_time})" for view in self._views))
        new = Rows()
        for row in good:
            identity = tuple(row[name] for name in contract.unique_id)
            if identity not in self._seen:
                self._seen.add(identity)
                new.append(row)
        return pa.concat_tables([self._of_view(view, new) for view in self._views], promote_options="default")

    def _of_view(self, view: Windowed, new: Rows) -> pa.Table:
        changed = {}
        for key, (clicks, amount) in engine.windows(view, new.where(view.on_time)).items():
            before = self._windows.get((view.name, *key), (0, 0))
            changed[key] = self._windows[view.name, *key] = (before[0] + clicks, before[1] + amount)
        kinds = {"TIMESTAMP": pa.timestamp("us", tz="UTC"), "BIGINT": pa.int64(), "STRING": pa.string()}
        row = pa.struct([(name, kinds[kind]) for name, kind in view.columns.items()])
        rows = [{"_view": view.name, view.name: [found]} for found in engine.window_rows(view, changed)]
        return pa.Table.from_pylist(rows, pa.schema({"_view": pa.string(), view.name: pa.list_(row)}))

    def state(self) -> _Windows:
        """What is kept."""
        return {*self._seen}, dict(self._windows)


class _Output:
    """What ``foreachBatch`` gets."""

    sparkSession = None

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def _to_table(self) -> tuple[pa.Table, None]:
        return self._rows, None


class LiveJob:
    """One live query."""

    def __init__(self, world: World, name: str, views: Sequence[View]) -> None:
        self.world, self.name, self.views = world, name, views
        self.streams = tuple(dict.fromkeys(stream for view in views for stream in view.streams))
        job = Job(name, 1, self.streams)
        self.members = [(Generation(view.name, shared=job), view) for view in views]
        self.checkpoint = Checkpoint()
        self._operator: Any = None
        for view in views:
            world.lake.create(live_of(view), view.live_columns)

    @property
    def is_between(self) -> bool:
        """Whether a micro-batch has begun and is not finished: its rows may be in the table."""
        return self.checkpoint.finished + 1 in self.checkpoint.offsets

    def trigger(self) -> bool:
        """One micro-batch, if there is anything to read. A query that was killed starts from its checkpoint."""
        try:
            with self.world.lease(f"query {self.name}"):
                return self._run()
        except Killed:
            self._operator = None
            raise

    def _run(self) -> bool:
        number = self.checkpoint.finished + 1
        before = self.checkpoint.position()
        if self._operator is None:
            self.world.say(f"  {self.name} starts from batch {number}")
            kind: Any = KeyedOperator if isinstance(self.views[0], Keyed) else WindowOperator
            self._operator = kind(self.world, self.views, self.checkpoint.state, self.checkpoint.first_planned())
            self._sink = Sink(self.members)
        if number not in self.checkpoint.offsets:
            ends = self._plan(before)
            if ends == before:
                return False
            self.checkpoint.offsets[number] = Batch(number, tuple({t: ends[t]} for t in ends), 0, self.world.now, {})
        ends = self.checkpoint.offsets[number].offsets
        self.world.place(f"offsets of {self.name}")
        parsed = {s: engine.parse(self._read(CONTRACTS[s].topic, before, ends), CONTRACTS[s]) for s in self.streams}
        self._sink(_Output(self._operator.process(parsed)), number)
        self.world.place(f"state of {self.name}")
        self.checkpoint.state, self.checkpoint.finished = self._operator.state(), number
        return True

    def _plan(self, before: Ends) -> Ends:
        """Where the next micro-batch ends. Keyed views bound it: then each partition gives some part of what it has."""
        ends: Ends = {}
        for topic in (CONTRACTS[stream].topic for stream in self.streams):
            starts = before.get(topic, {})
            log = self.world.kafka.offsets(topic).partitions
            has = {p: last - starts.get(p, first) for p, (first, last) in log.items()}
            total, limit = sum(has.values()), self.world.max_offsets_per_trigger
            if isinstance(self.views[0], Keyed) and total > limit:
                has = {p: -(-n * limit // total) for p, n in has.items()}
            ends[topic] = {p: starts.get(p, log[p][0]) + n for p, n in has.items()}
        return ends

    def _read(self, topic: str, before: Ends, ends: Ends) -> Iterable[Row]:
        for p, end in ends[topic].items():
            start = before.get(topic, {}).get(p, 0)
            yield from map(engine.bronze_row, self.world.kafka.read((topic, p), start, end))


def _milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
