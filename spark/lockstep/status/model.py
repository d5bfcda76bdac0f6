"""What the status says: streams, views, health, runs and gates, and what of it is not all right."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from lockstep.status.lag import PartitionLag


@dataclass(frozen=True)
class Stream:
    """One stream's way through the layers, in rows, offsets of lag, and seconds.

    Args:
        lag: offsets that the topic holds beyond each layer: ``bronze``, ``silver``, and ``gold`` and ``live`` per view.
        partitions: the same per partition.
        fresh_at: milliseconds (UTC) of the newest bronze commit, None before the first.
    """

    name: str
    topic: str
    log_end: int
    bronze: int = 0
    silver: int = 0
    duplicates: int = 0
    quarantined: int = 0
    markers: int = 0
    lag: Mapping[str, int] = field(default_factory=dict)
    partitions: Sequence[PartitionLag] = ()
    fresh_at: int | None = None

    @property
    def adds_up(self) -> bool:
        """Whether every row of bronze that silver has seen is accounted for."""
        accounted = self.silver + self.duplicates + self.quarantined + self.markers
        return accounted == self.bronze or self.lag.get("silver", 0) > self.lag.get("bronze", 0)


@dataclass(frozen=True)
class ViewStatus:
    """One view: its sums, how far both layers agree, and what does not."""

    name: str
    counted: int
    ignored: int
    side_output: int
    until: str | None
    windows: int
    unexplained: int
    sample: str | None

    @property
    def verdict(self) -> str:
        if self.until is None:
            return "nothing compared yet"
        return "equal" if self.unexplained == 0 else "unexplained"


@dataclass(frozen=True)
class Status:
    """The one screen. ``health`` is by part, ``runs`` by DAG (the last run's state and end), ``quality`` by table."""

    streams: list[Stream]
    views: list[ViewStatus]
    health: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    quality: Mapping[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        streams = [
            asdict(s) | {"adds_up": s.adds_up, "partitions": [p.as_dict() for p in s.partitions]} for s in self.streams
        ]
        views = [asdict(v) | {"verdict": v.verdict} for v in self.views]
        return {"ok": self.ok} | asdict(self) | {"streams": streams, "views": views}


def age(milliseconds: int | None) -> str:
    """How long ago that was, in words."""
    if milliseconds is None:
        return "never"
    seconds = int(datetime.now(UTC).timestamp() - milliseconds / 1000)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"
