"""Look for a person in every place where the platform keeps data, by decoding it: the proof that an erasure was one.

Files are unpacked, and Parquet, the logs of Delta, their checkpoints, and state are read as their readers do. Databases and
topics are read as a whole, by their own clients.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import kafka
from deltalake.exceptions import DeltaError, TableNotFoundError
from psycopg2 import sql
from pyarrow import fs
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.erase import sent
from lockstep.erase.database import connection_to
from lockstep.erase.decode import contents
from lockstep.erase.receipt import KEYS
from lockstep.errors import LockstepError
from lockstep.kafka_clients import consumer
from lockstep.lake import small_commits

if TYPE_CHECKING:
    from lockstep.control.erased import Offsets
    from lockstep.erase.needles import Needles
    from lockstep.settings import Settings

# Of the home, by directory: databases and logs that their own servers are asked for, what servers were installed from, and what
# the platform keeps of the erasure itself.
_ASKED_OTHERWISE = ("postgres", "kafka", "lake", "jars", "run", "erasures")
# The tables of the control database that keep of an erasure what must be known later.
_OWN_TABLES = {"erasures"}
# What is a place of its own, by the table of the control database.
_PLACES = {"subject_keys": KEYS}
# The topics that the platform compacts.
_CHANGELOG = "changelog."
# Kafka's own bookkeeping: names of groups and transactions, and no records.
_OF_BROKERS = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
_AT_ONCE_MS = 1000
_STALLED_SECONDS = 120
# Of the home, what goes by itself: files of shuffles, among others.
_TRANSIENT = "tmp/"
_SETTLED_SECONDS = 5
UNDECODED = "cannot be decoded"
FOR_EVER = ", and keeps it for ever, because it has no retention.ms"
UNREADABLE = "its log cannot be read"
Ends = tuple[int, int]


class Stalled(LockstepError):
    """A topic has records that the broker does not give."""


@dataclass(frozen=True, order=True)
class Hit:
    """A trace of the person.

    Args:
        place: the kind of place, such as ``lake``.
        where: the file, the table or the topic.
        what: which value, in which form.
    """

    place: str
    where: str
    what: str

    @property
    def is_transient(self) -> bool:
        """Whether it is in a working file of a server, which removes it when nothing refers to it, or when it starts again."""
        return self.place == "home" and self.where.startswith(_TRANSIENT)


@dataclass(frozen=True)
class Scan:
    """What was found in all places.

    Args:
        looked_at: by place, how many files, tables or records were read.
        hits: traces that must not be there.
        kept: by topic and partition, the first and the last offset of erased records, and of what sinks have sent,
            that the broker still has.
        until: by topic and partition of sinks, when the broker has removed these (UTC).
        superseded: the same of records of changelog topics that compaction will remove.
    """

    looked_at: Mapping[str, int]
    hits: tuple[Hit, ...]
    kept: Mapping[str, Ends]
    until: Mapping[str, datetime]
    superseded: Mapping[str, Ends]


def rows_of(settings: "Settings", value: str, columns: Iterable[str]) -> set[Hit]:
    """The tables of the lake that have rows of a person, by a column: also of one whose value is too common to look for."""
    found = set()
    asked = value.replace("'", "''")
    for table in lake.tables(settings):
        try:
            there = {*columns} & {name for name, kind in lake.types(settings, table).items() if kind == "string"}
            rows = {name: small_commits.collect(settings, table, f"\"{name}\" = '{asked}'", [name]) for name in there}
        except TableNotFoundError:  # it was dropped meanwhile
            continue
        except DeltaError as error:  # no proof that it has none
            found.add(Hit("lake", table, f"{UNREADABLE}: {str(error).partition(chr(10))[0]}"))
            continue
        found |= {Hit("lake", table, f"the subject in the column {name}") for name, of in rows.items() if of.num_rows}
    return found


def scan(
    settings: "Settings",
    needles: "Needles",
    erased: "Mapping[str, Offsets]",
    subject: str = "",
    columns: Iterable[str] = (),
) -> Scan:
    """Look everywhere.

    Args:
        subject, columns: who must have no row, and in which columns of tables a person is named.
        erased: by topic, the offsets of records that were erased: their bytes are known to be there until the broker forgets.
    """
    hits = rows_of(settings, subject, columns) if subject else set[Hit]()
    looked_at: dict[str, int] = {}
    for place, found in (("lake", _lake(settings, needles)), ("home", _home(settings, needles))):
        looked_at[place] = 0
        for where, names in found:
            looked_at[place] += 1
            hits |= {Hit(place, where, name) for name in names}
    for place, database in (("control database", settings.control_database), ("Airflow's database", "airflow")):
        looked_at[place] = 0
        for table, names in _database(settings, database, needles):
            of = _PLACES.get(table, place)
            looked_at[of] = looked_at.get(of, 0) + 1
            hits |= {Hit(of, table, name) for name in names}
    kept: dict[str, Ends] = {}
    until: dict[str, datetime] = {}
    kept_for = sent.kept_for(settings)
    candidates: list[_Record] = []
    newest: dict[tuple[str, bytes | None], _Record] = {}
    looked_at["Kafka"] = 0
    for record in _records(settings, needles):
        looked_at["Kafka"] += 1
        if record.topic.startswith(_CHANGELOG):
            newest[record.place, record.key] = record
        if record.offset in erased.get(record.topic, {}).get(record.partition, ()):
            kept[record.place] = _wider(kept.get(record.place), record.offset)
        elif record.names and record.topic in kept_for:
            kept[record.place] = _wider(kept.get(record.place), record.offset)
            gone_at = record.at + kept_for[record.topic]
            until[record.place] = max(until.get(record.place, gone_at), gone_at)
        elif record.names:
            candidates.append(record)
    superseded: dict[str, Ends] = {}
    for record in candidates:
        last = newest.get((record.place, record.key))
        if last and (last.offset > record.offset or record.is_tombstone):
            superseded[record.place] = _wider(superseded.get(record.place), record.offset)
        else:
            why = FOR_EVER if record.topic in sent.TOPICS else ""
            hits |= {Hit("Kafka", record.place, f"{name}{why}") for name in record.names}
    return Scan(looked_at, tuple(sorted(hits)), kept, until, superseded)


def settled(settings: "Settings", needles: "Needles", found: Scan) -> Scan:
    """The same scan, with a second look at files that were being written, or that their servers remove when they can."""
    waiting = {hit for hit in found.hits if _may_go(hit)}
    files = {(hit.place, hit.where) for hit in waiting}

    def left() -> set[Hit]:
        return {hit for place, where in files for hit in _look(settings, needles, place, where)}

    until_none = Retrying(
        stop=stop_after_delay(_SETTLED_SECONDS),
        wait=wait_fixed(1),
        retry=retry_if_result(bool),
        # What is still there then is a trace.
        retry_error_callback=lambda last: last.outcome.result() if last.outcome else waiting,
    )
    return replace(found, hits=tuple(sorted({*found.hits} - waiting | until_none(left))))


def _may_go(hit: Hit) -> bool:
    return hit.is_transient or hit.what.startswith(UNDECODED)


def _look(settings: "Settings", needles: "Needles", place: str, where: str) -> set[Hit]:
    """What one file of the lake, or of the home, has now."""
    filesystem, root = fs.FileSystem.from_uri(settings.lake if place == "lake" else str(settings.home))
    data = _read(filesystem, f"{root}/{where}")
    return {Hit(place, where, name) for name in _within(data, where, needles)} if data is not None else set()


@dataclass(frozen=True)
class _Record:
    topic: str
    partition: int
    offset: int
    at: datetime
    key: bytes | None
    is_tombstone: bool
    names: frozenset[str]

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition}"


def _wider(ends: Ends | None, offset: int) -> Ends:
    return (min(ends[0], offset), max(ends[1], offset)) if ends else (offset, offset)


def _lake(settings: "Settings", needles: "Needles") -> Iterator[tuple[str, set[str]]]:
    filesystem, root = fs.FileSystem.from_uri(settings.lake)
    for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
        if info.type != fs.FileType.File:
            continue
        if (data := _read(filesystem, info.path)) is not None:
            yield info.path.removeprefix(f"{root}/"), _within(data, info.path, needles)


def _read(filesystem: fs.FileSystem, path: str) -> bytes | None:
    """The bytes of a file; None: a writer or a server has removed it meanwhile."""
    try:
        with filesystem.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def _home(settings: "Settings", needles: "Needles") -> Iterator[tuple[str, set[str]]]:
    """Logs of servers and of Airflow's tasks, data docs, what dbt wrote, and what servers keep while they run."""
    for directory in sorted(settings.home.iterdir()):
        if directory.name in _ASKED_OTHERWISE or not directory.is_dir():
            continue
        # Not rglob, which fails when a server removes a directory meanwhile.
        every = (Path(parent, name) for parent, _, names in os.walk(directory) for name in names)
        for file in sorted(path for path in every if path.is_file() and not path.is_symlink()):
            if (data := _read(fs.LocalFileSystem(), str(file))) is not None:
                yield str(file.relative_to(settings.home)), _within(data, file.name, needles)


def _within(data: bytes, name: str, needles: "Needles") -> set[str]:
    found = needles.within(Path(name).name.encode())
    try:
        return found | needles.within_any(contents(data, name))
    except (OSError, ValueError, IndexError, KeyError) as error:
        # What cannot be unpacked is no proof: it is named, and a person looks at it.
        return found | needles.within(data) | {f"{UNDECODED} ({type(error).__name__})"}


def _database(settings: "Settings", database: str, needles: "Needles") -> Iterator[tuple[str, set[str]]]:
    connection = connection_to(settings, database)
    if connection is None:
        return
    with closing(connection), connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        for schema, table in cursor.fetchall():
            if table in _OWN_TABLES:
                continue
            cursor.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table)))
            found: set[str] = set()
            while rows := cursor.fetchmany(10_000):
                found |= needles.within_any(part for (text,) in rows for part in _texts(text))
            yield table, found


def _texts(row: str) -> Iterator[bytes]:
    """A row as PostgreSQL writes it, and its bytes where it has a column of these."""
    yield row.encode()
    for found in re.findall(r"\\x([0-9a-f]+)", row):
        if len(found) % 2 == 0:
            yield from contents(bytes.fromhex(found))


def _records(settings: "Settings", needles: "Needles") -> Iterator[_Record]:
    """All records of all topics, also of transactions that were aborted."""
    with closing(consumer(settings, isolation_level="read_uncommitted", enable_auto_commit=False)) as reader:
        topics = sorted(set(reader.topics()) - _OF_BROKERS)
        partitions = [kafka.TopicPartition(t, p) for t in topics for p in sorted(reader.partitions_for_topic(t) or ())]
        starts, ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
        positions = {tp: starts[tp] for tp in partitions if starts[tp] < ends[tp]}
        reader.assign([*positions])
        for tp, position in positions.items():
            reader.seek(tp, position)
        deadline = time.monotonic() + _STALLED_SECONDS
        while positions:
            for tp, records in reader.poll(timeout_ms=_AT_ONCE_MS, max_records=10_000).items():
                for record in records:
                    if record.offset < ends[tp]:
                        names, gone = frozenset(_of_record(record, needles)), record.value is None
                        at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
                        yield _Record(tp.topic, tp.partition, record.offset, at, record.key, gone, names)
            reached = {tp: reader.position(tp) for tp in positions}
            if reached != positions:
                deadline = time.monotonic() + _STALLED_SECONDS
            elif time.monotonic() > deadline:
                where = ", ".join(f"{tp.topic}-{tp.partition} at {at} of {ends[tp]}" for tp, at in reached.items())
                raise Stalled(
                    f"Kafka has given no record for {_STALLED_SECONDS} s: {where}. Look at the broker, then ask again."
                )
            # The last offsets may be markers of transactions, which are no records.
            positions = {tp: position for tp, position in reached.items() if position < ends[tp]}


def _of_record(record: "kafka.consumer.fetcher.ConsumerRecord", needles: "Needles") -> set[str]:
    parts = [record.key, record.value, *(value for _, value in record.headers or ())]
    return needles.within_any(part for part in parts if part)
