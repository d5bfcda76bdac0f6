"""The simulated world: one clock, one pair of dice, the log, the tables, the faults. All follows from the seed."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.simulation.kafka import Kafka
from tests.support.simulation.lake import Change, Lake, Rows, Write, rows_of
from tests.support.simulation.streams import CONTRACTS

from lockstep.control.intervals import IntervalHeld
from lockstep.control.records import Record
from lockstep.definition.view import Interval
from lockstep.errors import LeaseHeld
from lockstep.lake import Txn
from lockstep.ledger.heads import Head

if TYPE_CHECKING:
    import pyarrow as pa
    from tests.support.simulation.live import LiveJob

# 2026-11-10 10:00 UTC, in milliseconds.
START = 1_794_304_800_000
# The probability that a write that outlived its process comes to its end just before the next one of its table.
_MEETS = 0.5
# Steps that a report of a failure shows.
SHOWN = 40


class Killed(BaseException):
    """The process died here. No handler of the platform sees it, as none sees SIGKILL."""


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant


@dataclass(frozen=True)
class Faults:
    """How often things go wrong, as probabilities.

    Args:
        kill: at each place between two writes, the process dies.
        outlive: of a write, the process dies and the write goes on; it may come late.
        interleave: at each such place, something else runs first.
    """

    kill: float
    outlive: float
    interleave: float


class World:
    """One run. The platform's code gets it as its settings."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, Random(seed)
        self.now = START
        self.kafka = Kafka({contract.topic: contract.partitions for contract in CONTRACTS.values()})
        self.lake = Lake()
        self.heads: dict[str, Head] = {}
        self.leases: set[str] = set()
        self.late_writes: list[Write] = []
        self.machine_files: dict[str, dict[str, pa.Table]] = {}
        self.jobs: dict[str, LiveJob] = {}
        # What the control database keeps: the newest record of each key of the tables ``ops.*``, and who holds which intervals.
        self.records: dict[str, dict[str, Record]] = {}
        self.intervals: dict[tuple[str, str], Interval] = {}
        self.trace: deque[str] = deque(maxlen=SHOWN)
        # What has happened, so that it is known whether a set of seeds meets everything.
        self.met: Counter[str] = Counter()
        self.steps = 0
        rate = self.random.choice((0.0, 0.01, 0.04))
        self.faults = Faults(rate, rate, self.random.choice((0.0, 0.03)))
        self.env = ""
        self.max_offsets_per_run = self.random.choice((3, 10, 50, 500))
        self.max_offsets_per_trigger = self.random.choice((3, 10, 500))
        # So many rows are worked on without Spark.
        self.small_rows = self.random.choice((0, 5, 20_000))
        # The age of replays is asked of the real clock.
        self.retain_hours = 10**7
        # What may run while something else is between two writes.
        self.anything: Callable[[], None] | None = None

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        self.steps += 1
        self.trace.append(f"{self.steps:4} {(self.now - START) / 1000:9.3f} s  {text}")

    def happens(self, probability: float) -> bool:
        """Throw the dice."""
        return probability > 0 and self.random.random() < probability

    def place(self, name: str) -> None:
        """A place between two writes: the process may die here, and others may run."""
        if self.happens(self.faults.kill):
            self.say(f"  killed at {name}")
            self.met[f"killed: {name.rpartition(' ')[0] or name}"] += 1
            raise Killed(name)
        if self.anything and self.happens(self.faults.interleave):
            anything, self.anything = self.anything, None
            self.met["interleaved"] += 1
            try:
                self.say(f"  meanwhile, at {name}:")
                anything()
            finally:
                self.anything = anything

    def write(self, table: str, txn: Txn, record: Any, operation: str, rows: Any, change: Change) -> None:
        """Commit a write, unless the process dies before."""
        write = Write(table, txn, dict(record), operation, rows_of(rows), change)
        self.place(f"write of {table}")
        if self.happens(self.faults.outlive):
            self.late_writes.append(write)
            self.say(f"  killed, and the write {txn.version} of {table} goes on")
            raise Killed(table)
        before = [late for late in self.late_writes if late.table == table]
        if before and self.happens(_MEETS):
            self.late_writes.remove(before[0])
            self.arrive(before[0])
        self.lake.commit(write)
        self.place(f"after the write of {table}")

    def arrive(self, write: Write) -> None:
        """A write that outlived its process comes to its end."""
        done = self.lake.commit(write)
        outcome = "is committed" if done else "is skipped"
        self.met[f"a late write {outcome}"] += 1
        self.say(f"the late write {write.txn.version} of {write.table} {outcome}")

    @contextmanager
    def lease(self, tables: str | Sequence[str]) -> Iterator["World"]:
        """As :func:`lockstep.control.leases.lease`, for somebody who does not wait."""
        names = {tables} if isinstance(tables, str) else {*tables}
        if names & self.leases:
            raise LeaseHeld(f"{names & self.leases} is held")
        self.leases |= names
        try:
            yield self
        finally:
            self.leases -= names

    def put(self, table: str, records: Iterable[Record]) -> int:
        """As :func:`lockstep.control.records.put`."""
        self.place(f"record of {table}")
        of_table, written = self.records.setdefault(table, {}), 0
        for record in records:
            known = of_table.get(record.key)
            if known is None or known.seq < record.seq:
                # In the database it is JSON, and the world has a time of its own.
                at = datetime.fromtimestamp(self.lake.ticks / 1000, UTC)
                of_table[record.key] = replace(record, fields=json.loads(json.dumps(record.fields)), written_at=at)
                written += 1
        return written

    def records_of(self, table: str) -> list[Record]:
        """As :func:`lockstep.control.records.of_each_key`."""
        return sorted(self.records.get(table, {}).values(), key=lambda record: record.seq)

    def claim(self, replay: str, spans: Mapping[str, Interval]) -> None:
        """As :func:`lockstep.control.intervals.claim`."""
        for (holder, table), (low, high) in self.intervals.items():
            if table in spans and holder != replay and low < spans[table][1] and high > spans[table][0]:
                raise IntervalHeld(f"{table} is held by {holder}")
        for table, (low, high) in spans.items():
            first, last = self.intervals.get((replay, table), (low, high))
            self.intervals[replay, table] = min(first, low), max(last, high)

    def release(self, replay: str) -> None:
        """As :func:`lockstep.control.intervals.release`."""
        self.intervals = {key: span for key, span in self.intervals.items() if key[0] != replay}

    def rows(self, table: str) -> Rows:
        """The rows of a table now; none if it does not exist."""
        return self.lake.tables[table].rows if table in self.lake.tables else Rows()
