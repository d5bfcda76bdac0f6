"""The proof that a ledger is whole: its entries join without gap or overlap, and its newest commit is still there."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lockstep.errors import LedgerBroken
from lockstep.ledger.entries import Entry, SignedFor

if TYPE_CHECKING:
    from lockstep.ledger.heads import Head


def problems(oldest_first: Iterable[Entry]) -> Iterator[str]:
    """Every break of the chain: a skipped number, a gap, an overlap, more rows than offsets. Empty when all is well."""
    previous: Entry | None = None
    for entry in oldest_first:
        where = f"{entry.table} entry {entry.seq} (version {entry.version})"
        offsets = sum(r.size for r in entry.ranges)
        if entry.rows > offsets:
            yield f"{where}: {entry.rows} rows out of {offsets} offsets"
        if previous:
            yield from (f"{where}: {problem}" for problem in _breaks(previous, entry))
        previous = entry


def _breaks(previous: Entry, entry: Entry) -> Iterator[str]:
    if entry.seq != previous.seq + 1:
        yield f"follows entry {previous.seq}"
    by_partition = {(r.topic_id, r.partition): r for r in entry.ranges}
    if entry.signed and entry.signed.get("kind") == SignedFor.RECREATION:
        by_partition |= {(before.topic_id, r.partition): r for before in previous.ranges for r in entry.ranges}
    for before in previous.ranges:
        r = by_partition.get((before.topic_id, before.partition))
        if r is None:
            yield f"{before.topic}-{before.partition} is missing"
        elif r.start > before.end:
            yield f"{r.topic}-{r.partition} misses offsets [{before.end}, {r.start})"
        elif r.start < before.end:
            yield f"{r.topic}-{r.partition} repeats offsets [{r.start}, {before.end})"


def check_tip(table: str, newest: Entry | None, head: "Head | None") -> None:
    """Compare the newest entry of the log with the head, which the control database keeps.

    Raises:
        LedgerBroken: the log ends before the head: commits that were acknowledged are gone.
    """
    if head and (newest is None or newest.seq < head.seq):
        end = f"entry {newest.seq} (version {newest.version})" if newest else "nothing"
        raise LedgerBroken(
            f"{table}: its log ends with {end}, but entry {head.seq} (version {head.version}) was committed. The newest commit "
            "is gone. `lockstep ledger repair` takes it again from Kafka; or restore the table's _delta_log from a backup. "
            "Nothing was read or written."
        )
