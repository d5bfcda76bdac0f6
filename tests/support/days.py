"""History in a hurry: the platform's own writers and housekeeping, day after day, on tables whose days take a second.

No clock is changed. After each day, the times of all files are set back by a day, so that what housekeeping keeps for hours is as
old as it would be.
"""

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from lockstep import lake, ledger
from lockstep.contracts import Contract
from lockstep.control.database import control
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.ledger import RETENTION, archive, integrity
from lockstep.ledger.heads import advance
from lockstep.ledger.ranges import Range
from lockstep.maintain import maintain
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
class Days:
    """A stream and a view whose days pass quickly.

    Args:
        settings: with a lake of their own; no file is kept for readers.
        commits: of each table and day.
        checkpoint_every: commits of a log; 100 are delta-rs's own.
        start: when the first day begins (UTC).
        day: how many days have passed.
        spark: a session, if the tables are Spark's.
        removed: the bytes that VACUUM has removed on each day.
        housekeeping: the CPU seconds that the housekeeping has taken on each day.
    """

    settings: Settings
    contract: Contract
    view: View
    commits: int
    checkpoint_every: int = 100
    start: datetime = START
    day: int = 0
    spark: Any = None
    removed: list[int] = field(default_factory=list)
    housekeeping: list[float] = field(default_factory=list)
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

    @property
    def now(self) -> datetime:
        """The end of the last day."""
        return self.start + timedelta(days=self.day)

    @property
    def root(self) -> Path:
        """The lake."""
        return Path(self.settings.lake.removeprefix("file://"))

    def pass_one(self) -> None:
        """Write a day's commits, look after the tables, and let the day pass."""
        for n in range(self.commits):
            self.write(self.now + timedelta(seconds=86_400 * n // self.commits))
        self.look_after()
        self.let_pass()

    def let_pass(self) -> None:
        """Let a day pass."""
        self.day += 1
        for path in self.root.rglob("*"):
            at = path.stat().st_mtime - 86_400
            os.utime(path, (at, at))

    def look_after(self) -> None:
        """Run the housekeeping."""
        before, taken = self._data_bytes(), time.process_time()
        maintain(self.spark, self.settings, self.tables, f"day-{self.day}")
        self.housekeeping.append(time.process_time() - taken)
        self.removed.append(max(before - self._data_bytes(), 0))

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
        self._commit(self.gold, "rollup", gold, done, taken, counts={"counted": ROWS}, hour=at.replace(minute=0))

    def _commit(
        self,
        table: str,
        writer: str,
        rows: pa.Table,
        previous: ledger.Entry | None,
        ranges: list[Range],
        hour: datetime | None = None,
        **more: Any,
    ) -> None:
        record = ledger.record(writer, previous, f"day-{self.day}", ranges, **more)
        txn = ledger.txn(table, record)
        if hour:
            lake.replace(rows, self.settings, table, self.view.interval(hour, hour + timedelta(hours=1)), txn, record)
        else:
            lake.append(rows, self.settings, table, txn, record)
        written = ledger.committed(self.settings, table, record)
        with control(self.settings) as connection:
            integrity.record_digest(connection, self.settings, table, written.version)
            advance(connection, table, written.version, written.seq, list(written.ranges))

    def live_bytes(self) -> int:
        """The bytes of the files that the newest versions have."""
        from lockstep.lake.small_commits import SmallCommits

        sizes = (SmallCommits(self.settings, table).file_sizes() for table in self.tables)
        return sum(sum(map(sum, of_table.values())) for of_table in sizes)

    def bytes_on_disk(self, kept_days: int) -> int:
        """The bytes of the lake, with the files that would be kept for readers for so many days."""
        lake_bytes = sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())
        return lake_bytes + sum(self.removed[-kept_days:])

    def inodes(self) -> int:
        return sum(1 for _ in self.root.rglob("*"))

    def _data_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.root.rglob("*.parquet") if path.parent.name != "_delta_log")


def _rows(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
