"""The plan of a replay: what it reads, which rows it replaces, and which intervals it locks. Pure."""

from datetime import datetime
from typing import ClassVar

from lockstep.contracts import CONTRACTS
from lockstep.control import intervals
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import Interval
from lockstep.ledger.ranges import Range, size, to_where
from lockstep.replay.request import Layer
from lockstep.replay.stages import Model, Shadowed, Stage, StageResult


class Part(Model):
    """The rows of one stream that a replay reads again.

    Args:
        ranges: per partition. Where silver is computed again they are whole runs of ``refine``.
        arrived: the arrivals (UTC) of the first and the last of these rows, where the statistics in the log tell.
        source: the table that the rows are read from.
        missing: what Kafka has of the interval but bronze lacks, by the brokers' time index.
        rows, size: rows, and bytes as written.
    """

    stream: str
    ranges: tuple[Range, ...]
    arrived: Interval | None
    source: str
    missing: tuple[Range, ...] = ()
    rows: int = 0
    size: int = 0

    @property
    def where(self) -> str:
        """A SQL predicate for these rows in silver."""
        return to_where(self.ranges, "_partition", "_offset")


class Target(Model):
    """The rows of a view that a replay replaces: the windows that start, or the instants that lie, in ``[low, high)`` (UTC).

    Args:
        low, high: None where they follow from the rows, once those are read.
        windows: at most so many windows have rows; None where that is not known.
    """

    view: str
    low: datetime | None = None
    high: datetime | None = None
    windows: int | None = None

    @property
    def span(self) -> Interval | None:
        """``[low, high)``, where it is known."""
        return (self.low, self.high) if self.low and self.high else None


class Plan(StageResult):
    """What a replay will read and replace.

    Args:
        layers: those that are computed again, upstream first.
        late: rows count in the views however late they came.
        seconds: the estimate for the shadow, from earlier replays; None when there was none of these layers yet.
    """

    stage: ClassVar[Stage] = Stage.PLANNED

    layers: tuple[Layer, ...]
    parts: tuple[Part, ...]
    targets: tuple[Target, ...]
    late: bool = False
    seconds: float | None = None

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(part.rows for part in self.parts)

    def part(self, stream: str) -> Part | None:
        """What is read again of a stream."""
        return next((part for part in self.parts if part.stream == stream), None)

    def silver_part(self, stream: str) -> Part | None:
        """What the replay replaces in a stream's silver."""
        part = self.part(stream) if "silver" in self.layers else None
        return part if part and size(part.ranges) else None


def intervals_of(plan: Plan, shadowed: Shadowed | None = None) -> dict[str, Interval]:
    """The interval of each table that the replay locks: of bronze and silver in arrival, of gold in event time.

    A table is locked as a whole where its interval is not known. With the shadow, the intervals of gold are.
    """
    locked: dict[str, Interval] = {}
    for part in plan.parts:
        tables = Tables.of(CONTRACTS[part.stream])
        written = {"bronze": tables.bronze, "silver": tables.log}
        locked |= {table: part.arrived or intervals.ALWAYS for layer, table in written.items() if layer in plan.layers}
    for target in plan.targets:
        view, shadow = VIEWS[target.view], shadowed.gold.get(target.view) if shadowed else None
        span = (shadow and shadow.span) or target.span
        locked[gold_of(view)] = intervals.of_gold(view, *span) if span else intervals.ALWAYS
    return locked
