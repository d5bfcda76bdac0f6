"""History in a hurry: the platform's own writers and housekeeping, day after day, on tables whose days take a second.

No clock is changed. After each day, the times of all files are set back by a day, so that what housekeeping keeps for hours is as
old as it would be.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from lockstep import lake, ledger
from lockstep.cli.ledger import _newest
from lockstep.cli.ledger import problems as verify
from lockstep.contracts import Contract
from lockstep.control.database import control
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.lake.log import _Log
from lockstep.ledger import RETENTION, archive, integrity
from lockstep.ledger.event_time import newest_at
from lockstep.ledger.heads import advance
from lockstep.ledger.log_files import LogFiles
from lockstep.ledger.ranges import Range
from lockstep.maintain import maintain
from lockstep.quality import slices
from lockstep.replay.parse import parse
from lockstep.replay.resolve import resolve
from lockstep.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 3
ROWS = 30
VALUE_BYTES = 300
_TIME = pa.timestamp("us", "UTC")
BRONZE = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIME),
        ("value", pa.binary()),
    ]
)
SILVER = pa.schema(
    [
        ("value", pa.string()),
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_arrival", _TIME),
    ]
)
GOLD = pa.schema([("window_start", _TIME), ("page", pa.string()), ("views", pa.int64())])
ARCHIVE = pa.schema(
    [
        ("table", pa.string()),
        ("seq", pa.int64()),
        ("version", pa.int64()),
        ("committed_at", _TIME),
        ("run_id", pa.string()),
        ("code_version", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("time_column", pa.string()),
        ("first", _TIME),
        ("last", _TIME),
        (
            "ranges",
            pa.list_(
                pa.struct(
                    [
                        ("topic", pa.string()),
                        ("topic_id", pa.string()),
                        ("partition", pa.int32()),
                        ("start", pa.int64()),
                        ("end", pa.int64()),
                    ]
                )
            ),
        ),
        ("record", pa.string()),
    ]
)


@dataclass
class Cost:
    """What one step has cost.

    Args:
        files: files of logs that were read.
        looked: commits that were looked for: the newest one is found from the log's last checkpoint on, in steps that double.
        listed: commits of logs that were listed.
    """

    seconds: float = 0.0
    files: int = 0
    looked: int = 0
    listed: int = 0


@dataclass
class Days:
    """A stream and a view whose days pass quickly.

    Args:
        settings: with a lake of their own; no file is kept for readers.
        commits: of each table and day.
        checkpoint_every: commits of a log; 100 are delta-rs's own.
        removed: the bytes that VACUUM has removed on each day.
    """

    settings: Settings
    contract: Contract
    view: View
    commits: int
    checkpoint_every: int = 100
    day: int = 0
    removed: list[int] = field(default_factory=list)
    _dice: Random = field(default_factory=lambda: Random(1))

    def __post_init__(self) -> None:
        assert list(archive.COLUMNS) == ARCHIVE.names
        tables = Tables.of(self.contract)
        self.bronze, self.silver, self.gold = tables.bronze, tables.log, gold_of(self.view)
        schemas = {self.bronze: BRONZE, self.silver: SILVER, self.gold: GOLD}
        properties = RETENTION | {"delta.checkpointInterval": str(self.checkpoint_every)}
        for table, schema in schemas.items():
            write_deltalake(lake.path(self.settings, table), schema.empty_table(), configuration=properties)
        write_deltalake(lake.path(self.settings, archive.TABLE.name), ARCHIVE.empty_table(), partition_by=["table"])

    @property
    def tables(self) -> list[str]:
        return [self.bronze, self.silver, self.gold, archive.TABLE.name]

    def pass_one(self) -> None:
        """Write a day's commits, look after the tables, and let the day pass."""
        for n in range(self.commits):
            self.write(START + timedelta(days=self.day, seconds=86_400 * n // self.commits))
        self.look_after()
        self.let_pass()

    def let_pass(self) -> None:
        """Let a day pass."""
        self.day += 1
        for path in Path(self.settings.lake).rglob("*"):
            at = path.stat().st_mtime - 86_400
            os.utime(path, (at, at))

    def look_after(self) -> None:
        """Run the housekeeping."""
        before = _data_bytes(self.settings)
        maintain(None, self.settings, self.tables, f"day-{self.day}")  # type: ignore[arg-type]
        self.removed.append(max(before - _data_bytes(self.settings), 0))

    def write(self, at: datetime) -> None:
        """One commit of each layer, with the rows that arrived at an instant."""
        newest = ledger.latest(self.settings, self.bronze)
        starts = {r.partition: r.end for r in newest.ranges} if newest else dict.fromkeys(range(PARTITIONS), 0)
        topic, share = self.contract.topic, ROWS // PARTITIONS
        ranges = [Range(topic, "id", p, start, start + share) for p, start in starts.items()]
        offsets = [(p, start + n) for p, start in starts.items() for n in range(share)]
        values = [self._dice.randbytes(VALUE_BYTES) for _ in offsets]
        bronze = [(topic, p, n, at, value) for (p, n), value in zip(offsets, values, strict=True)]
        self._commit(self.bronze, "ingest", _rows(bronze, BRONZE), newest, ranges)
        silver = [(value.hex()[:VALUE_BYTES], topic, p, n, at) for (p, n), value in zip(offsets, values, strict=True)]
        done = ledger.latest(self.settings, self.silver)
        source = ledger.latest(self.settings, self.bronze)
        taken = ledger.pending(self.settings, source, done, 1 << 62)
        self._commit(self.silver, "refine", _rows(silver, SILVER), done, taken, counts={"silver": ROWS})
        done, source = (ledger.latest(self.settings, table) for table in (self.gold, self.silver))
        taken = ledger.pending(self.settings, source, done, 1 << 62)
        gold = _rows([(at.replace(minute=0), "/", ROWS), (at.replace(minute=0), "/cart", 1)], GOLD)
        self._commit(self.gold, "rollup", gold, done, taken, counts={"counted": ROWS}, span=at.replace(minute=0))

    def _commit(
        self,
        table: str,
        writer: str,
        rows: pa.Table,
        newest: ledger.Entry | None,
        ranges: list[Range],
        span: datetime | None = None,
        **more: Any,
    ) -> None:
        record = ledger.record(writer, newest, f"day-{self.day}", ranges, **more)
        txn = ledger.txn(table, record)
        if span:
            lake.replace(rows, self.settings, table, self.view.interval(span, span + timedelta(hours=1)), txn, record)
        else:
            lake.append(rows, self.settings, table, txn, record)
        written = ledger.committed(self.settings, table, record)
        with control(self.settings) as connection:
            integrity.record_digest(connection, self.settings, table, written.version)
            advance(connection, table, written.version, written.seq, list(written.ranges))

    def live_bytes(self) -> int:
        """The bytes of the files that the newest versions have."""
        from lockstep.lake.small_commits import SmallCommits

        sizes = (SmallCommits(self.settings, t).file_sizes() for t in (self.bronze, self.silver, self.gold))
        return sum(sum(map(sum, of_table.values())) for of_table in sizes)

    def bytes_on_disk(self, kept_days: int) -> int:
        """The bytes of the lake, with the files that would be kept for readers for so many days."""
        lake_bytes = sum(path.stat().st_size for path in Path(self.settings.lake).rglob("*") if path.is_file())
        return lake_bytes + sum(self.removed[-kept_days:])

    def inodes(self) -> int:
        return sum(1 for _ in Path(self.settings.lake).rglob("*"))


def costs(days: Days) -> dict[str, Cost]:
    """What each step of the platform costs on this day; the day's commits of ``write`` included."""
    settings, at = days.settings, START + timedelta(days=days.day)
    # A day with rows for the plan, which is always as old.
    asked = {
        "reason": "a day in a hurry",
        "from": at - timedelta(days=1, hours=12),
        "to": at - timedelta(days=1, hours=6),
        "topics": [days.contract.name],
        "layers": ["silver", "gold"],
    }
    long_ago = asked | {"from": START, "to": START + timedelta(hours=6)}
    steps: dict[str, Callable[[], object]] = {
        "newest entry of three tables": lambda: [ledger.latest(settings, table) for table in days.tables[:3]],
        "a minute's commits": lambda: days.write(at),
        "ranges of a new view": lambda: ledger.pending(settings, ledger.latest(settings, days.silver), None, 1 << 62),
        "times at a position": lambda: newest_at(ledger.entries(settings, days.silver), {0: 1, 1: 1, 7: 0}),
        "slice of a gate": lambda: slices.pending(
            settings, days.silver, ledger.latest(settings, days.silver).version - 1
        ),
        "ledger show": lambda: _newest(settings, days.bronze, 10),
        "plan of a recent replay": lambda: resolve(settings, parse(asked)),
        "plan of a replay of the first day": lambda: resolve(settings, parse(long_ago)),
        "ledger verify": lambda: verify(settings, days.contract),
        "Delta logs verified": lambda: [integrity.problems(settings, table) for table in days.tables],
        "housekeeping": days.look_after,
    }
    found = {}
    for name, step in steps.items():
        found[name] = Cost()
        with measured(found[name]):
            step()
    return found


@contextmanager
def measured(cost: Cost) -> Iterator[None]:
    """Add what the block costs."""
    originals = {name: getattr(_Log, name) for name in ("read", "_has", "versions")}
    files = LogFiles

    def counting(name: str) -> Any:
        def call(log: Any, *arguments: Any) -> Any:
            found = originals[name](log, *arguments)
            if name == "versions":
                cost.listed += len(found)
            elif name == "_has":
                cost.looked += 1
            else:
                cost.files += 1
            return found

        return call

    read = files.read

    def reading(self: Any, name: str) -> bytes:
        cost.files += 1
        return read(self, name)

    for name in originals:
        setattr(_Log, name, counting(name))
    files.read = reading  # type: ignore[method-assign]
    start = time.monotonic()
    try:
        yield
    finally:
        cost.seconds += time.monotonic() - start
        files.read = read  # type: ignore[method-assign]
        for name, original in originals.items():
            setattr(_Log, name, original)


def _rows(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _data_bytes(settings: Settings) -> int:
    return sum(
        path.stat().st_size for path in Path(settings.lake).rglob("*.parquet") if path.parent.name != "_delta_log"
    )
