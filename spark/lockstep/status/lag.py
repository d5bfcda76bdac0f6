"""Lag per partition: how far each layer, batch and live, is behind the log.

Spark's queries commit no group offsets, so Kafka's own lag tools do not see them. Here the positions come from the ledgers
in the tables' commits and from the live queries' checkpoints.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from lockstep.ledger.ranges import TopicOffsets


@dataclass(frozen=True)
class PartitionLag:
    """One partition of a stream.

    Args:
        start, end: offsets ``[start, end)`` that the log holds for a ``read_committed`` reader.
        position: by layer (``bronze``, ``silver``, ``gold.<view>``, ``live.<view>``), the next offset that it has yet to see;
            a layer that has not begun stands at ``start``.
    """

    partition: int
    start: int
    end: int
    position: Mapping[str, int]

    @property
    def lag(self) -> dict[str, int]:
        """By layer, the offsets that the log holds beyond its position."""
        return {layer: self.end - at for layer, at in self.position.items()}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"lag": self.lag}


def partition_lags(topic: TopicOffsets, positions: Mapping[str, Mapping[int, int]]) -> list[PartitionLag]:
    """The lag of every partition of the topic.

    Args:
        positions: by layer, partition to the next offset; a partition that a layer does not name was not begun.
    """
    return [
        PartitionLag(p, start, end, {layer: at.get(p, start) for layer, at in positions.items()})
        for p, (start, end) in sorted(topic.partitions.items())
    ]


def total(partitions: Iterable[PartitionLag]) -> dict[str, int]:
    """By layer, the lag of the whole stream."""
    sums: dict[str, int] = {}
    for partition in partitions:
        sums |= {layer: sums.get(layer, 0) + lag for layer, lag in partition.lag.items()}
    return sums


def table(found: Mapping[str, Iterable[PartitionLag]]) -> Table:
    """One row a partition and layer."""
    shown = Table("partition", "layer", box=None, pad_edge=False)
    for name in ("log start", "log end", "position", "lag"):
        shown.add_column(name, justify="right")
    for stream, partitions in found.items():
        for p in partitions:
            for layer, at in p.position.items():
                numbers = (p.start, p.end, at, p.lag[layer])
                shown.add_row(f"{stream}-{p.partition}", layer, *(f"{n:,}" for n in numbers))
    return shown
