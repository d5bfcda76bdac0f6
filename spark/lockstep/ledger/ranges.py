"""Ranges of offsets, and the arithmetic on them. Pure.

A micro-batch is a set of ``(topic, topic id, partition, [start, end))``. Every commit of bronze, silver and gold carries
one range for *every* partition, an empty one where nothing was read, so the ends of one commit are the whole position.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.errors import DataLoss, LedgerBroken, TopicRecreated


@dataclass(frozen=True, order=True)
class Range:
    """Offsets ``[start, end)`` of one partition."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise LedgerBroken(f"{self.topic}-{self.partition}: [{self.start}, {self.end}) is not a range of offsets")

    @property
    def size(self) -> int:
        return self.end - self.start

    def as_dict(self) -> dict[str, Any]:
        # Much faster than `asdict`, which copies deeply.
        return dict(vars(self))


@dataclass(frozen=True)
class TopicOffsets:
    """What one topic holds now: per partition, its first offset and its last stable offset."""

    topic: str
    topic_id: str
    partitions: Mapping[int, tuple[int, int]]


def encode(ranges: Iterable[Range]) -> list[dict[str, Any]]:
    """The ranges as a commit's record has them: each topic once, with ``[partition, start, end]`` of its partitions."""
    topics: dict[tuple[str, str], list[list[int]]] = {}
    for r in ranges:
        topics.setdefault((r.topic, r.topic_id), []).append([r.partition, r.start, r.end])
    return [{"topic": topic, "topic_id": key, "partitions": taken} for (topic, key), taken in topics.items()]


def decode(encoded: Iterable[Mapping[str, Any]]) -> list[Range]:
    """The ranges of a record."""
    return [Range(of["topic"], of["topic_id"], *taken) for of in encoded for taken in of["partitions"]]


def size(ranges: Iterable[Range]) -> int:
    """How many offsets the ranges cover."""
    return sum(r.size for r in ranges)


def ends(ranges: Iterable[Range]) -> dict[int, int]:
    """The position after the ranges: partition to next offset."""
    return {r.partition: r.end for r in ranges}


def plan(previous: Iterable[Range], log: TopicOffsets, max_offsets: int) -> list[Range]:
    """Plan the next micro-batch: from where the previous one ended, at most ``max_offsets`` offsets in all.

    Partitions that the ledger has not seen start at their first offset. The offsets are shared among the partitions in
    proportion to the backlog of each, so that no partition starves and all come to about the same event time.

    Raises:
        TopicRecreated: the topic's id differs from the ledger's.
        DataLoss: retention, truncation or a removed partition took offsets that were not read yet.
    """
    before = {r.partition: r for r in previous}
    _check(before, log)
    starts = {p: before[p].end if p in before else first for p, (first, _) in log.partitions.items()}
    backlog = {p: last - starts[p] for p, (_, last) in log.partitions.items()}
    share = _shares(backlog, max_offsets)
    return [
        Range(
            topic=log.topic,
            topic_id=log.topic_id,
            partition=p,
            start=starts[p],
            end=starts[p] + share[p],
        )
        for p in sorted(log.partitions)
    ]


def _check(before: Mapping[int, Range], log: TopicOffsets) -> None:
    for p, r in before.items():
        where = f"{log.topic}-{p}"
        if r.topic_id != log.topic_id:
            raise TopicRecreated(
                f"{where}: the ledger ends at offset {r.end} of topic id {r.topic_id}, but the broker's topic has id "
                f"{log.topic_id}: it was deleted and created again. Its offsets begin at 0 again, so it is another stream: "
                "give it a contract of its own."
            )
        if p not in log.partitions:
            raise DataLoss(f"{where}: the ledger ends at offset {r.end}, but the broker has no such partition.")
        first, last = log.partitions[p]
        if first > r.end:
            raise DataLoss(
                f"{where}: offsets [{r.end}, {first}) are gone from the log before they were read. "
                "Raise the topic's retention. `lockstep ledger accept-gap` accepts the gap, which is the only way past it."
            )
        if last < r.end:
            raise DataLoss(
                f"{where}: the ledger ends at offset {r.end}, but the log ends at {last}: the broker lost "
                f"offsets [{last}, {r.end}), which bronze has. Restore the broker before anything is produced."
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


def gaps(previous: Iterable[Range], log: TopicOffsets) -> list[Range]:
    """The ranges that are gone from the log before they were read; an empty range for each partition that misses nothing.

    Raises:
        TopicRecreated, DataLoss: what is missing is not the beginning of the log, so nobody can accept it.
    """
    before = {r.partition: r for r in previous}
    first = {p: max(r.end, log.partitions.get(p, (r.end, r.end))[0]) for p, r in before.items()}
    skipped = [Range(r.topic, r.topic_id, p, r.end, first[p]) for p, r in sorted(before.items())]
    _check({r.partition: r for r in skipped}, log)
    return skipped


def plan_downstream(
    previous: Iterable[Range], source: Iterable[Range], origin: Mapping[int, int], max_offsets: int
) -> list[Range]:
    """Plan what a downstream table takes from its source: from the ends of ``previous`` to the ends of ``source``.

    Args:
        origin: per partition, the first offset of the source's own ledger. There a partition starts that is new to the table.
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


def where_below(ranges: Iterable[Range], topic: str) -> str:
    """A SQL predicate for all rows of a topic's silver before the ends of the ranges."""
    position = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in ranges if r.topic == topic]
    return to_where(position, "_partition", "_offset")


def where_in(ranges: Iterable[Range], topic: str) -> str:
    """A SQL predicate for the rows of a topic's silver in the ranges."""
    return to_where([r for r in ranges if r.topic == topic], "_partition", "_offset")
