"""Ranges of offsets, what a topic has of them, and the arithmetic on them. Pure.

A micro-batch is a set of ``(topic, topic id, partition, [start, end))``. Every commit of bronze, silver and gold carries
one range for *every* partition, an empty one where nothing was read, so the ends of one commit are the whole position.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from lockstep.errors import LedgerBroken


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
    """What one topic holds now.

    Args:
        partitions: per partition, its first offset and its last stable offset: what a ``read_committed`` reader finds.
        ends: per partition, its high watermark. Records between the last stable offset and it wait behind an open transaction.
        epochs: per partition, its leader epoch: a number that rises whenever its leader changes or starts again.
        unchanged_to: of partitions whose leader epoch is another than the one that was asked about, the offset up to which
            the log is still the same; -1: the broker does not know that epoch.
    """

    topic: str
    topic_id: str
    partitions: Mapping[int, tuple[int, int]]
    ends: Mapping[int, int] = field(default_factory=dict)
    epochs: Mapping[int, int] = field(default_factory=dict)
    unchanged_to: Mapping[int, int] = field(default_factory=dict)

    @property
    def stable_ends(self) -> dict[int, int]:
        """Per partition, its last stable offset."""
        return {partition: last for partition, (_, last) in self.partitions.items()}

    def below(self, until: Mapping[int, int]) -> "TopicOffsets":
        """The same topic, of which a reader stops before these offsets; in partitions without one, at the end."""
        bounded = {p: (first, min(last, until.get(p, last))) for p, (first, last) in self.partitions.items()}
        return replace(self, partitions=bounded)

    def end(self, partition: int) -> int:
        """The end of the partition's log: its high watermark, as far as it was asked for."""
        return self.ends.get(partition, self.partitions[partition][1])

    def same_to(self, partition: int) -> int:
        """The offset up to which the partition's log is the one that was asked about: its end, or where it was truncated."""
        return min(self.end(partition), self.unchanged_to.get(partition, self.end(partition)))


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


def to_where(ranges: Iterable[Range], partition: str = "partition", offset: str = "offset") -> str:
    """A SQL predicate that selects exactly the rows of the ranges (``false`` for none). All parts are integers."""
    parts = [
        f"({partition} = {r.partition} AND {offset} >= {r.start} AND {offset} < {r.end})" for r in ranges if r.size
    ]
    return "(" + " OR ".join(parts) + ")" if parts else "false"


def where_offsets(offsets: Mapping[int, Iterable[int]], partition: str = "partition", offset: str = "offset") -> str:
    """A SQL predicate for single offsets, by partition; ``false`` where there are none. Pure.

    Offsets that follow one another are one condition: the predicate of a leak is as short as its ranges.
    """
    parts = []
    for number, of in sorted(offsets.items()):
        spans = [*consecutive(of)]
        single = ", ".join(f"{first:d}" for first, last in spans if first == last)
        conditions = [f"{offset} BETWEEN {first:d} AND {last:d}" for first, last in spans if first < last]
        conditions += [f"{offset} IN ({single})"] if single else []
        if conditions:
            parts.append(f"({partition} = {number:d} AND ({' OR '.join(conditions)}))")
    return f"({' OR '.join(parts)})" if parts else "false"


def consecutive(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each row of offsets that follow one another, in order. Pure."""
    for _, of in groupby(enumerate(sorted({*offsets})), lambda pair: pair[1] - pair[0]):
        row = [offset for _, offset in of]
        yield row[0], row[-1]


def where_below(ranges: Iterable[Range], topic: str) -> str:
    """A SQL predicate for all rows of a topic's silver before the ends of the ranges."""
    position = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in ranges if r.topic == topic]
    return to_where(position, "_partition", "_offset")


def where_in(ranges: Iterable[Range], topic: str) -> str:
    """A SQL predicate for the rows of a topic's silver in the ranges."""
    return to_where([r for r in ranges if r.topic == topic], "_partition", "_offset")
