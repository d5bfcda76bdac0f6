"""Lag per partition: how many offsets each layer, batch and live, is behind the topic.

Spark's queries commit no group offsets, so Kafka's tools do not show their lag. The positions come from the ledgers in the
tables' commits and from the checkpoints of the live queries.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from lockstep.ledger.ranges import TopicOffsets


@dataclass(frozen=True)
class PartitionLag:
    """The offsets of one partition, and the position of each layer.

    Args:
        start, end: the offsets ``[start, end)`` that a ``read_committed`` reader can read.
        position: by layer (``bronze``, ``silver``, ``gold.<view>``, ``live.<view>``), the next offset that it will read. For
            a layer that has not read the partition yet it is ``start``.
    """

    partition: int
    start: int
    end: int
    position: Mapping[str, int]

    @property
    def lag(self) -> dict[str, int]:
        """By layer, the number of offsets from its position to the end."""
        return {layer: self.end - position for layer, position in self.position.items()}

    def as_dict(self) -> dict[str, Any]:
        """The fields and the lag, as ``--json`` prints them."""
        return asdict(self) | {"lag": self.lag}


def partition_lags(topic: TopicOffsets, positions: Mapping[str, Mapping[int, int]]) -> list[PartitionLag]:
    """The lag of every partition of the topic.

    Args:
        positions: by layer and partition, the next offset. A layer names only the partitions that it has read.
    """
    return [
        PartitionLag(p, start, end, {layer: offsets.get(p, start) for layer, offsets in positions.items()})
        for p, (start, end) in sorted(topic.partitions.items())
    ]


def total(partitions: Iterable[PartitionLag]) -> dict[str, int]:
    """By layer, the sum of the lag of all partitions."""
    sums: dict[str, int] = {}
    for partition in partitions:
        sums |= {layer: sums.get(layer, 0) + lag for layer, lag in partition.lag.items()}
    return sums


def lag_table(lags: Mapping[str, Iterable[PartitionLag]]) -> Table:
    """A table with one row for each partition and layer; ``lags`` is by stream."""
    table = Table("partition", "layer", box=None, pad_edge=False)
    for name in ("log start", "log end", "position", "lag"):
        table.add_column(name, justify="right")
    for stream, partitions in lags.items():
        for p in partitions:
            for layer, position in p.position.items():
                numbers = (p.start, p.end, position, p.lag[layer])
                table.add_row(f"{stream}-{p.partition}", layer, *(f"{n:,}" for n in numbers))
    return table
