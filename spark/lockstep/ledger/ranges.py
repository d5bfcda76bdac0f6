"""Ranges of offsets, and the arithmetic on them. Pure.

A micro-batch is a set of ``(topic, topic id, partition, [start, end))``. Every commit of bronze, silver and gold carries
one range for *every* partition, an empty one where nothing was read, so the ends of one commit are the whole position.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lockstep.errors import DataLoss, LedgerBroken, TopicRecreated


@dataclass(frozen=True, order=True)
class Range:
    """Offsets ``[start, end)`` of one partition.

    Args:
        idle_at: milliseconds since the epoch (UTC) at which the partition was found drained up to ``end``; only set where
            the broker stamps the records (``LogAppendTime``), because only then nothing older can follow.
    """

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    idle_at: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise LedgerBroken(f"{self.topic}-{self.partition}: [{self.start}, {self.end}) is not a range of offsets")

    @property
    def size(self) -> int:
        return self.end - self.start

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class TopicOffsets:
    """What the log of one topic holds now: per partition, its first offset and its last stable offset."""

    topic: str
    topic_id: str
    partitions: Mapping[int, tuple[int, int]]
    log_append_time: bool = False
    checked_at: int | None = None


def size(ranges: Iterable[Range]) -> int:
    """How many offsets the ranges cover."""
    return sum(r.size for r in ranges)


def ends(ranges: Iterable[Range]) -> dict[int, int]:
    """The position after the ranges: partition to next offset."""
    return {r.partition: r.end for r in ranges}


def plan(previous: Iterable[Range], bounds: TopicOffsets, max_offsets: int) -> list[Range]:
    """Plan the next micro-batch: from where the previous one ended, at most ``max_offsets`` offsets in all.

    Partitions that the ledger has not seen start at their first offset. A backlog is shared out among the partitions in
    proportion to what each still holds, so that none starves and event time stays level.

    Raises:
        TopicRecreated: the topic's id differs from the ledger's.
        DataLoss: retention, truncation or a removed partition took offsets that were not read yet.
    """
    before = {r.partition: r for r in previous}
    _check(before, bounds)
    starts = {p: before[p].end if p in before else first for p, (first, _) in bounds.partitions.items()}
    backlog = {p: last - starts[p] for p, (_, last) in bounds.partitions.items()}
    share = _shares(backlog, max_offsets)
    return [
        Range(
            topic=bounds.topic,
            topic_id=bounds.topic_id,
            partition=p,
            start=starts[p],
            end=starts[p] + share[p],
            idle_at=bounds.checked_at if bounds.log_append_time and share[p] == backlog[p] else None,
        )
        for p in sorted(bounds.partitions)
    ]


def _check(before: Mapping[int, Range], bounds: TopicOffsets) -> None:
    for p, done in before.items():
        where = f"{bounds.topic}-{p}"
        if done.topic_id != bounds.topic_id:
            raise TopicRecreated(
                f"{where}: the ledger ends at offset {done.end} of topic id {done.topic_id}, but the broker's topic has id "
                f"{bounds.topic_id}: it was deleted and created again. Its offsets start anew, so it is another stream: "
                "give it a contract of its own."
            )
        if p not in bounds.partitions:
            raise DataLoss(f"{where}: the ledger ends at offset {done.end}, but the broker has no such partition.")
        first, last = bounds.partitions[p]
        if first > done.end:
            raise DataLoss(
                f"{where}: offsets [{done.end}, {first}) are gone from the log before they were read. "
                "Raise the topic's retention; `lockstep ledger accept-gap` signs the gap, and is the only way past it."
            )
        if last < done.end:
            raise DataLoss(
                f"{where}: the ledger ends at offset {done.end}, but the log ends at {last}: the broker lost "
                f"offsets [{last}, {done.end}), which bronze has. Restore the broker before anything is produced."
            )


def _shares(backlog: Mapping[int, int], limit: int) -> dict[int, int]:
    """Share ``limit`` among the backlogs in proportion, by largest remainder; no share exceeds its backlog."""
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {p: n * limit // total for p, n in backlog.items()}
    by_remainder = sorted(backlog, key=lambda p: (-(backlog[p] * limit % total), p))
    for p in by_remainder[: limit - sum(shares.values())]:
        shares[p] += 1
    return shares


def gaps(previous: Iterable[Range], bounds: TopicOffsets) -> list[Range]:
    """The ranges that are gone from the log before they were read, with an empty range for every partition that is whole.

    Raises:
        TopicRecreated, DataLoss: what is missing is not the log's beginning, and cannot be gone past.
    """
    done = {r.partition: r for r in previous}
    lost = {p: max(r.end, bounds.partitions.get(p, (r.end, r.end))[0]) for p, r in done.items()}
    skipped = [Range(r.topic, r.topic_id, p, r.end, lost[p]) for p, r in sorted(done.items())]
    _check({r.partition: r for r in skipped}, bounds)
    return skipped


def after(
    previous: Iterable[Range], source: Iterable[Range], origin: Mapping[int, int], max_offsets: int
) -> list[Range]:
    """Plan what a downstream table has yet to take from its source: from ``previous``'s ends to ``source``'s ends.

    Args:
        origin: per partition, the first offset of the source's own ledger; where a new partition starts.
    """
    source = list(source)
    if not source:
        return []
    partitions = {r.partition: (origin.get(r.partition, 0), r.end) for r in source}
    return plan(previous, TopicOffsets(source[0].topic, source[0].topic_id, partitions), max_offsets)


def to_where(ranges: Iterable[Range], partition: str = "partition", offset: str = "offset") -> str:
    """A SQL predicate that selects exactly the rows of the ranges (``false`` for none). All parts are integers."""
    parts = [
        f"({partition} = {r.partition} AND {offset} >= {r.start} AND {offset} < {r.end})" for r in ranges if r.size
    ]
    return "(" + " OR ".join(parts) + ")" if parts else "false"
