"""The status of the platform: streams, views, services, DAG runs and gates, and the problems of each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from lockstep.airflow_api import Run
from lockstep.quality.outcomes import GateVerdict
from lockstep.status.lag import PartitionLag

# The state of a service that answers as it should; the stack has others, such as ``starting``.
HEALTHY = "healthy"


@dataclass(frozen=True)
class Stream:
    """The rows of one stream in each layer, and the lag of each layer.

    Args:
        unknown: by field that the contract does not name: how many rows of silver have it.
        lag: by layer, how many offsets it is behind the topic: ``bronze``, ``silver``, ``gold.<view>``, ``live.<view>``.
        partitions: the same per partition.
        fresh_at: the time of the newest bronze commit in milliseconds (UTC); None before the first.
    """

    name: str
    topic: str
    log_end: int
    bronze: int = 0
    silver: int = 0
    duplicates: int = 0
    quarantined: int = 0
    markers: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)
    partitions: Sequence[PartitionLag] = ()
    fresh_at: int | None = None

    @property
    def waiting(self) -> int:
        """How many offsets nobody can read before a transaction has ended."""
        return sum(p.waiting for p in self.partitions)

    @property
    def adds_up(self) -> bool:
        """Whether silver accounts for every row of bronze. Not known, so true, while silver is behind bronze."""
        accounted = self.silver + self.duplicates + self.quarantined + self.markers
        return accounted == self.bronze or self.lag.get("silver", 0) > self.lag.get("bronze", 0)


class Verdict(StrEnum):
    """Whether live and batch agree on a view."""

    NOT_COMPARED = "nothing compared yet"
    EQUAL = "equal"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class ViewStatus:
    """The row counts of one view, and how live and batch compare.

    Args:
        counted, ignored, side_output: rows of silver that gold counted, ignored as late, or wrote to the side output.
        until: live and batch are compared up to this time (ISO 8601); None before the first comparison.
        windows: how many windows the newest comparison compared.
        unexplained: how many of them differ for no known reason.
        sample: one of these.
    """

    name: str
    counted: int
    ignored: int
    side_output: int
    until: str | None
    windows: int
    unexplained: int
    sample: str | None

    @property
    def verdict(self) -> Verdict:
        """The result of the newest comparison."""
        if self.until is None:
            return Verdict.NOT_COMPARED
        return Verdict.UNEXPLAINED if self.unexplained else Verdict.EQUAL


@dataclass(frozen=True)
class Status:
    """Everything on the screen.

    Args:
        health: by service, its state, such as ``healthy``.
        runs: by DAG, its newest run that has ended.
        quality: by table, the newest verdict of its gate.
        problems: one sentence for each thing that is not all right.
    """

    streams: list[Stream]
    views: list[ViewStatus]
    health: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    quality: Mapping[str, GateVerdict] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """The status as ``--json`` prints it."""
        streams = [
            asdict(s) | {"waiting": s.waiting, "adds_up": s.adds_up, "partitions": [p.as_dict() for p in s.partitions]}
            for s in self.streams
        ]
        views = [asdict(v) | {"verdict": v.verdict} for v in self.views]
        return {"ok": self.ok} | asdict(self) | {"streams": streams, "views": views}


def age(milliseconds: int | None) -> str:
    """How long ago a time in milliseconds was, such as ``3 m ago``."""
    if milliseconds is None:
        return "never"
    seconds = int(datetime.now(UTC).timestamp() - milliseconds / 1000)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"
