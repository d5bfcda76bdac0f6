"""The ledger of a table: which offsets each commit took, read back from the table's own Delta log.

A commit's record (in ``userMetadata``) is ``{writer, seq, run_id, code_version, ranges, …}``. ``seq`` rises by one with every
commit of the writer, and the ranges of a commit start where those of the commit before ended.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.errors import LedgerBroken, Overtaken
from lockstep.lake import Commit, Txn
from lockstep.ledger.ranges import Range, decode, encode
from lockstep.version import code_version

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Part of each transaction id. A table whose entries were counted from 1 again would need another one, because Delta skips a
# commit whose number it has seen.
_GENERATION = 1
# How long a write is known that runs again. Delta does not clean the log: `maintain` does, once the ledger is archived.
RETENTION = {
    "delta.setTransactionRetentionDuration": "interval 400 days",
    "delta.enableExpiredLogCleanup": "false",
}
# What each entry of silver takes over from the one before it.
_KEPT = ("newest", "commits", "truncated")
# An entry counts so many unknown fields, the most frequent ones: its record stays small where every event has another name.
MOST_UNKNOWN = 50
# Operations of Delta that change no row.
HOUSEKEEPING = {
    *("CREATE TABLE", "ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "SET TBLPROPERTIES"),
    *("OPTIMIZE", "VACUUM START", "VACUUM END"),
}


class SignedFor(StrEnum):
    """What a person has signed for with an entry of bronze's ledger."""

    GAP = "gap"  # the ranges are gone from the log, and were never read
    TRUNCATION = "truncation"  # the log has lost rows that the table has
    RECREATION = "recreation"  # the topic was created again, and goes on under another id
    ERASURE = "erasure"  # the key and value of some of its rows were removed
    REPAIR = "repair"  # the rows were read again, because their commits were gone


@dataclass(frozen=True)
class Entry:
    """One entry of a table's ledger.

    Args:
        rows: rows written; fewer than offsets where the log has holes (transactions, compaction). A replay of bronze
            counts none, because its rows were counted before.
        counts: the writer's own sums, such as silver's ``{silver, duplicates, quarantined, markers}``; bronze's is ``rows``.
        totals: the sums of ``counts`` over this entry and all before it.
        commits: in silver's ledger of changes, the generation and LSN of each partition's newest commit up to here.
        truncated: in silver's ledger of changes, the position of the newest TRUNCATE up to here, and the time of its commit
            (milliseconds, UTC).
        newest: in silver's ledger of events, the newest Kafka timestamp of each partition up to here (milliseconds, UTC).
        unknown: in silver's ledger, by field that the contract did not name: how many rows up to here have it.
        code_since: since this entry, no other code version has written the table; 1: none ever has.
        epochs: in bronze's ledger, the leader epoch in which the log of each partition was read up to here.
        signed: where a person has signed for it, who (``by``), the ``reason``, and for what (``kind``: :class:`SignedFor`).
        lost: what the log has lost and the table still has, where the entry is signed for that.
        until: of a view's gold, the instant (UTC) before which its rows are final.
        definition: of a view's gold, the version of the definition that wrote it.
        sources: by table, the version that it was computed from.
        machines: of a keyed view's gold, the file with its machines at this entry.
    """

    table: str
    version: int
    seq: int
    run_id: str
    code_version: str
    ranges: tuple[Range, ...]
    rows: int
    counts: Mapping[str, int]
    totals: Mapping[str, int]
    committed_at: int
    commits: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    truncated: tuple[int, ...] | None = None
    newest: Mapping[int, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    code_since: int = 1
    epochs: Mapping[int, int] = field(default_factory=dict)
    signed: Mapping[str, str] | None = None
    lost: tuple[Range, ...] = ()
    until: datetime | None = None
    definition: str | None = None
    sources: Mapping[str, int] = field(default_factory=dict)
    machines: str | None = None


def entry(commit: Commit) -> Entry:
    """Read the ledger entry out of a commit whose record has ranges."""
    record = commit.record
    ranges = tuple(decode(record["ranges"]))
    # Ingest does not count its rows before it writes them: Delta does.
    counts = record.get("counts", {"rows": commit.rows})
    return Entry(
        table=commit.table,
        version=commit.version,
        seq=record["seq"],
        run_id=record["run_id"],
        code_version=record["code_version"],
        ranges=ranges,
        rows=record.get("rows", commit.rows),
        counts=counts,
        totals=add(record.get("before", {}), counts),
        committed_at=commit.timestamp,
        commits={int(partition): (at[0], at[1]) for partition, at in record.get("commits", {}).items()},
        truncated=tuple(record["truncated"]) if record.get("truncated") else None,
        newest={int(partition): at for partition, at in record.get("newest", {}).items()},
        unknown=add(record.get("unknown_before", {}), record.get("unknown", {})),
        code_since=record["code_since"],
        epochs={int(partition): epoch for partition, epoch in record.get("epochs", {}).items()},
        signed=record.get("signed"),
        lost=tuple(decode(record.get("lost", ()))),
        until=datetime.fromisoformat(record["until"]) if record.get("until") else None,
        definition=record.get("definition"),
        sources=record.get("sources", {}),
        machines=record.get("machines"),
    )


def entries(settings: "Settings", table: str) -> Iterator[Entry]:
    """The table's ledger as far as its log goes back, newest first; :mod:`~lockstep.ledger.history` has older entries."""
    return (entry(c) for c in lake.commits(settings, table) if "ranges" in c.record)


def latest(settings: "Settings", table: str) -> Entry | None:
    """The newest entry, or None."""
    return next(entries(settings, table), None)


def committed(settings: "Settings", table: str, record: Mapping[str, Any]) -> Entry:
    """The entry that the commit of this record has just made.

    Raises:
        Overtaken: Delta has skipped the commit, because another run had committed something else under its number: other ranges,
            or also none, of which nobody knows whether it wrote the same rows.
        LedgerBroken: the commit was acknowledged, but the log does not have it.
    """
    newest = latest(settings, table)
    if newest is None or newest.seq != record["seq"]:
        raise LedgerBroken(
            f"{table}: entry {record['seq']} was acknowledged, but its log ends with {newest.seq if newest else 'nothing'}. "
            "See its _delta_log."
        )
    took_nothing = not any(r.size for r in newest.ranges)
    if encode(newest.ranges) != record["ranges"] or (took_nothing and newest.run_id != record["run_id"]):
        raise Overtaken(
            f"{table}: entry {newest.seq} is of run {newest.run_id}, whose task has died, but whose write went on. "
            f"Run {record['run_id']} again: it continues after that entry."
        )
    return newest


def add(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    """Two sets of counts, added name by name."""
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted(left.keys() | right.keys())}


def most_frequent(unknown: Mapping[str, int]) -> dict[str, int]:
    """The unknown fields that most rows have, at most :data:`MOST_UNKNOWN`, by name."""
    return dict(sorted(sorted(unknown.items(), key=lambda of: (-of[1], of[0]))[:MOST_UNKNOWN]))


def untouched(settings: "Settings", newest: Entry) -> bool:
    """Whether no other writer has changed the table's rows since its newest entry; housekeeping does not count."""
    since = itertools.takewhile(lambda commit: commit.version > newest.version, lake.commits(settings, newest.table))
    return all(map(is_housekeeping, since))


def only_grew(settings: "Settings", table: str, version: int) -> bool:
    """Whether a table's writer has only taken further offsets since a version, and nobody has changed other rows.

    It is not known, and so denied, of a version that the log no longer has.
    """
    for commit in lake.commits(settings, table):
        if commit.version <= version:
            return commit.version == version
        if not is_housekeeping(commit) and ("ranges" not in commit.record or "replay" in commit.record):
            return False
    return False


def is_housekeeping(commit: Commit) -> bool:
    """Whether a commit has changed no row."""
    return commit.operation in HOUSEKEEPING or commit.record.get("writer") == lake.WIDEN


def by_this_code(settings: "Settings", newest: Entry) -> bool:
    """Whether all rows of the table were written by the code that runs now, and by nobody else."""
    return newest.code_since == 1 and newest.code_version == code_version() and untouched(settings, newest)


def record(
    writer: str,
    previous: Entry | None,
    run_id: str,
    ranges: Iterable[Range],
    mixed: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """The record that makes a commit the ledger entry that follows ``previous``.

    Args:
        mixed: the table has rows of another writer.
        more: further fields of the record.
    """
    seq = previous.seq + 1 if previous else 1
    same_code = previous and previous.code_version == code_version() and not mixed
    return {
        "writer": writer,
        "seq": seq,
        "code_since": previous.code_since if previous and same_code else seq,
        "run_id": run_id,
        "code_version": code_version(),
        "ranges": encode(ranges),
        "before": dict(previous.totals) if previous else {},
        **({name: value for name in _KEPT if (value := getattr(previous, name, None))}),
        **({"unknown_before": most_frequent(previous.unknown)} if previous and previous.unknown else {}),
        **more,
    }


def signature(kind: SignedFor, by: str, reason: str) -> dict[str, str]:
    """The field ``signed`` of a record."""
    return {"kind": kind.value, "by": by, "reason": reason}


def txn(table: str, record: Mapping[str, Any]) -> Txn:
    """The transaction id under which a record's writer commits to a table."""
    return Txn(f"{record['writer']}:{table}:{_GENERATION}", record["seq"])


def unchanged_position(entry: Entry) -> list[Range]:
    """An empty range for every partition: what a commit that takes no offsets records."""
    return [Range(r.topic, r.topic_id, r.partition, r.end, r.end) for r in entry.ranges]
