"""What a roll-up of a view takes: from each stream, the offsets of silver that gold does not have yet. Only ledgers are read."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.definition.view import BEGINNING
from lockstep.ledger.event_time import watermark
from lockstep.ledger.ranges import Range, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings

_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Intake:
    """What a roll-up takes from one stream: silver's newest entry, and the ranges that gold has not taken yet."""

    stream: str
    source: ledger.Entry
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Plan:
    """What a roll-up of a view takes.

    Args:
        newest: gold's newest entry, which the roll-up follows.
        intakes: one for each of the view's streams.
        until: the instant (UTC) before which the view is final after the roll-up. It never moves back.
    """

    newest: ledger.Entry | None
    intakes: tuple[Intake, ...]
    until: datetime

    @property
    def low(self) -> datetime:
        """The instant (UTC) before which the view was final before."""
        return (self.newest and self.newest.until) or BEGINNING

    @property
    def size(self) -> int:
        """The number of offsets that it takes."""
        return sum(size(intake.ranges) for intake in self.intakes)

    @property
    def ranges(self) -> "Mapping[str, tuple[Range, ...]]":
        """By stream, the offsets that it takes."""
        return {intake.stream: intake.ranges for intake in self.intakes}

    def silver(self, spark: "SparkSession", settings: "Settings") -> "Mapping[str, DataFrame]":
        """By stream, all rows of silver up to the end of the new ones."""
        return {
            intake.stream: lake.read(spark, settings, intake.source.table, intake.source.version)
            for intake in self.intakes
        }


def plan(settings: "Settings", view: "View", newest: ledger.Entry | None) -> Plan | None:
    """Plan the roll-up that follows an entry of gold; None: nothing is new, or a stream has no silver yet."""
    intakes = []
    for stream in view.streams:
        source = ledger.latest(settings, Tables.of(CONTRACTS[stream]).log)
        if source is None:
            return None
        intakes.append(Intake(stream, source, tuple(ledger.pending(settings, source, newest, _NO_LIMIT))))
    planned = Plan(newest, tuple(intakes), _until(view, intakes, newest))
    return planned if planned.size else None


def _until(view: "View", intakes: list[Intake], newest: ledger.Entry | None) -> datetime:
    before = (newest and newest.until) or BEGINNING
    events = [intake for intake in intakes if CONTRACTS[intake.stream].kind == "events"]
    passed = [
        watermark(CONTRACTS[intake.stream], intake.source.newest, (r.partition for r in intake.ranges))
        for intake in events
    ]
    times = [time for time in passed if time is not None]
    return max(before, min(times) - view.limit) if times and len(times) == len(passed) else before
