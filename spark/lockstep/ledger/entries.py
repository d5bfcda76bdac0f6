"""The ledger: which offsets each commit of a table took, read back from the table's own log.

A commit's record (in ``userMetadata``) is ``{writer, seq, run_id, code_version, ranges, …}``; ``seq`` rises by one with
every commit of a writer, and its ranges start where the ranges of the commit before ended.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.errors import LedgerBroken, Overtaken
from lockstep.lake import Commit, Txn
from lockstep.ledger.ranges import Range, after
from lockstep.version import code_version

if TYPE_CHECKING:
    from lockstep.ledger.heads import Head
    from lockstep.settings import Settings

GENERATION = 1
HOUSEKEEPING = {"CREATE TABLE", "OPTIMIZE", "SET TBLPROPERTIES", "VACUUM START", "VACUUM END"}


@dataclass(frozen=True)
class Entry:
    """One entry of a table's ledger.

    Args:
        rows: rows written; fewer than offsets where the log has holes (transactions, compaction). A replay of bronze
            counts none, as it only puts back what was counted before.
        counts: the writer's own sums, such as silver's ``{silver, duplicates, quarantined, markers}``; bronze's is ``rows``.
        totals: the same, over this entry and all before it.
        reached: per partition, the newest Kafka timestamp (milliseconds, UTC) among the rows written, or the moment at which
            the partition was found drained.
        code_since: the entry from which on this code version alone has written the table; 1: all of it.
        until: for a keyed view's gold, the instant (ISO, UTC) before which its rows are final.
        signed: ``by`` and ``why``, where the ranges are a gap that somebody has accepted, and hold no rows.
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
    reached: Mapping[int, int]
    committed_at: int
    code_since: int = 1
    signed: Mapping[str, str] | None = None
    until: str | None = None


def entry(commit: Commit) -> Entry:
    """Read the ledger entry out of a commit whose record has ranges."""
    record = commit.record
    ranges = tuple(Range(**r) for r in record["ranges"])
    # Bronze's rows are only known to the commit itself, which counts what it wrote.
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
        # A replay writes old rows again: how far the log has come, they do not say.
        reached={} if "replay" in record else _reached(ranges, commit.files),
        committed_at=commit.timestamp,
        code_since=record["code_since"],
        signed=record.get("signed"),
        until=record.get("until"),
    )


def _reached(ranges: Iterable[Range], files: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    reached = {r.partition: r.idle_at for r in ranges if r.idle_at is not None}
    for stats in files:
        low, high = stats.get("minValues", {}), stats.get("maxValues", {})
        if "timestamp" in high and low.get("partition") == high.get("partition"):
            newest = int(datetime.fromisoformat(high["timestamp"]).timestamp() * 1000)
            reached[high["partition"]] = max(newest, reached.get(high["partition"], 0))
    return reached


def entries(settings: "Settings", table: str) -> Iterator[Entry]:
    """The table's ledger, newest first."""
    return (entry(c) for c in lake.commits(settings, table) if "ranges" in c.record)


def latest(settings: "Settings", table: str) -> Entry | None:
    """The newest entry, or None."""
    return next(entries(settings, table), None)


def committed(settings: "Settings", table: str, record: Mapping[str, Any]) -> Entry:
    """The entry that the commit of this record has just made.

    Raises:
        Overtaken: Delta has skipped the commit, as another run had committed other ranges under its number.
        LedgerBroken: the commit was acknowledged, but the log does not have it.
    """
    newest = latest(settings, table)
    if newest is None or newest.seq != record["seq"]:
        raise LedgerBroken(
            f"{table}: entry {record['seq']} was acknowledged, but its log ends with {newest.seq if newest else 'nothing'}. "
            "See its _delta_log."
        )
    if [r.as_dict() for r in newest.ranges] != record["ranges"]:
        raise Overtaken(
            f"{table}: entry {newest.seq} is of run {newest.run_id}, whose task has died, but whose write was still at work. "
            f"Run {record['run_id']} again: it goes on from there."
        )
    return newest


def origin(settings: "Settings", table: str) -> dict[int, int]:
    """Per partition, the first offset that the ledger covers."""
    first: dict[int, int] = {}
    for e in entries(settings, table):
        first |= {r.partition: r.start for r in e.ranges}
    return first


def untaken(settings: "Settings", source: Entry | None, done: Entry | None, max_offsets: int) -> list[Range]:
    """Plan what a downstream table (its newest entry: ``done``) has yet to take from its source's ledger; ``[]`` for no source.

    A partition that is new to it starts where the source's ledger started.
    """
    if source is None:
        return []
    topics = {r.topic for r in source.ranges}
    previous = [r for r in done.ranges if r.topic in topics] if done else []
    new = {r.partition for r in source.ranges} - {r.partition for r in previous}
    return after(previous, source.ranges, origin(settings, source.table) if new else {}, max_offsets)


def add(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The sum of two sets of counts."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted(one.keys() | other.keys())}


def untouched(settings: "Settings", newest: Entry) -> bool:
    """Whether nobody else has changed the table's rows since its newest entry; housekeeping does not count."""
    since = itertools.takewhile(lambda c: c.version > newest.version, lake.commits(settings, newest.table))
    return all(commit.operation in HOUSEKEEPING for commit in since)


def by_this_code(settings: "Settings", newest: Entry) -> bool:
    """Whether all of the table was written by the code that runs now, and by nobody else."""
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
        mixed: the table has rows that somebody else wrote.
    """
    seq = previous.seq + 1 if previous else 1
    goes_on = previous and previous.code_version == code_version() and not mixed
    return {
        "writer": writer,
        "seq": seq,
        "code_since": previous.code_since if previous and goes_on else seq,
        "run_id": run_id,
        "code_version": code_version(),
        "ranges": [r.as_dict() for r in ranges],
        "before": dict(previous.totals) if previous else {},
        **more,
    }


def txn(table: str, record: Mapping[str, Any]) -> Txn:
    """The transaction id under which a record's writer commits to a table."""
    return Txn(f"{record['writer']}:{table}:{GENERATION}", record["seq"])


def check_tip(table: str, newest: Entry | None, head: "Head | None") -> None:
    """Stop when the log ends before the head that was written after an earlier commit.

    Raises:
        LedgerBroken: commits that were acknowledged are gone from the Delta log.
    """
    if head and (newest is None or newest.seq < head.seq):
        at = f"entry {newest.seq} (version {newest.version})" if newest else "nothing"
        raise LedgerBroken(
            f"{table}: its log ends with {at}, but entry {head.seq} (version {head.version}) was committed. The newest commit "
            "is gone: restore the table's _delta_log from a backup. Nothing was read or written."
        )


def problems(oldest_first: Iterable[Entry]) -> Iterator[str]:
    """Every break of the chain: a skipped number, a gap, an overlap, more rows than offsets. Empty when all is well."""
    before: Entry | None = None
    for now in oldest_first:
        where = f"{now.table} entry {now.seq} (version {now.version})"
        offsets = sum(r.size for r in now.ranges)
        if now.rows > offsets:
            yield f"{where}: {now.rows} rows out of {offsets} offsets"
        if before:
            yield from (f"{where}: {what}" for what in _breaks(before, now))
        before = now


def _breaks(before: Entry, now: Entry) -> Iterator[str]:
    if now.seq != before.seq + 1:
        yield f"follows entry {before.seq}"
    present = {(r.topic_id, r.partition): r for r in now.ranges}
    for last in before.ranges:
        r = present.get((last.topic_id, last.partition))
        if r is None:
            yield f"{last.topic}-{last.partition} is missing"
        elif r.start > last.end:
            yield f"{r.topic}-{r.partition} misses offsets [{last.end}, {r.start})"
        elif r.start < last.end:
            yield f"{r.topic}-{r.partition} repeats offsets [{r.start}, {last.end})"
