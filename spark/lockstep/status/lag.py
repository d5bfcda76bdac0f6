"""Lag per partition: how many offsets each layer, batch and live, is behind the topic.

Spark's queries commit no group offsets, so Kafka's tools do not show their lag. The positions come from the ledgers in the
tables' commits and from the checkpoints of the live queries.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from lockstep.ledger.ranges import TopicOffsets
from lockstep.terminal import Listing


@dataclass(frozen=True)
class PartitionLag:
    """The offsets of one partition, and the position of each layer.

    Args:
        start, end: the log is ``[start, end)``.
        stable: up to here a ``read_committed`` reader can read; what follows waits for the end of an open transaction.
        position: by layer (``bronze``, ``silver``, ``gold.<view>``, ``live.<view>``), the next offset that it will read. For
            a layer that has not read the partition yet it is ``start``.
        written_at: the time (UTC) of the newest record in the transaction that is open, where it is known.
    """

    partition: int
    start: int
    end: int
    stable: int
    position: Mapping[str, int]
    written_at: datetime | None = None

    @property
    def waiting(self) -> int:
        """How many offsets nobody can read before a transaction has ended."""
        return self.end - self.stable

    @property
    def lag(self) -> dict[str, int]:
        """By layer, the number of offsets from its position to the end."""
        return {layer: self.end - position for layer, position in self.position.items()}

    def as_dict(self) -> dict[str, Any]:
        """The fields and the lag, as ``--json`` prints them."""
        written_at = self.written_at.isoformat() if self.written_at else None
        return asdict(self) | {"written_at": written_at, "waiting": self.waiting, "lag": self.lag}


def partition_lags(
    topic: TopicOffsets,
    positions: Mapping[str, Mapping[int, int]],
    written_at: Mapping[tuple[str, int], datetime] | None = None,
) -> list[PartitionLag]:
    """The lag of every partition of the topic.

    Args:
        positions: by layer and partition, the next offset. A layer names only the partitions that it has read.
        written_at: by topic and partition, the time of the newest record in a transaction that is open.
    """
    times = written_at or {}
    return [
        PartitionLag(
            partition=p,
            start=start,
            end=topic.end(p),
            stable=stable,
            position={layer: offsets.get(p, start) for layer, offsets in positions.items()},
            written_at=times.get((topic.topic, p)),
        )
        for p, (start, stable) in sorted(topic.partitions.items())
    ]


def total(partitions: Iterable[PartitionLag]) -> dict[str, int]:
    """By layer, the sum of the lag of all partitions."""
    sums: dict[str, int] = {}
    for partition in partitions:
        sums |= {layer: sums.get(layer, 0) + lag for layer, lag in partition.lag.items()}
    return sums


def overdue(
    topic: str,
    partitions: Iterable[PartitionLag],
    max_lag: Mapping[str, timedelta],
    offsets_at: Mapping[timedelta, Mapping[tuple[str, int], int]],
) -> dict[str, int]:
    """By layer, how many offsets it has not read although their records are older than it may lag; without layers that have none.

    Args:
        max_lag: by layer, how old a record may become before the layer has read it.
        offsets_at: by such a limit, and then by topic and partition, the first offset that is not older. A partition that
            is missing has only older ones.
    """
    sums: dict[str, int] = {}
    for p in partitions:
        for layer, position in p.position.items():
            # What waits for the end of a transaction cannot be read, however old it is.
            due = min(offsets_at[max_lag[layer]].get((topic, p.partition), p.end), p.stable)
            if due > position:
                sums[layer] = sums.get(layer, 0) + due - position
    return sums


def lag_table(lags: Mapping[str, Iterable[PartitionLag]]) -> Listing:
    """A table with one row for each partition and layer; ``lags`` is by stream."""
    table = Listing("partition", "layer")
    for name in ("log start", "log end", "in transactions", "position", "lag"):
        table.add_column(name, justify="right")
    for stream, partitions in lags.items():
        for p in partitions:
            for layer, position in p.position.items():
                numbers = (p.start, p.end, p.waiting, position, p.lag[layer])
                table.add_row(f"{stream}-{p.partition}", layer, *(f"{n:,}" for n in numbers))
    return table
