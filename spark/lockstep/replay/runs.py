"""The runs of a table: its commits that took offsets, with the arrivals of their rows. Read from the log alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.definition.view import Interval
from lockstep.ledger import history
from lockstep.ledger.history import STATISTICS_STEP
from lockstep.ledger.ranges import Range

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Run:
    """One commit of a table that took offsets.

    Args:
        first, last: the arrivals of its first and last row (UTC), where its statistics have them.
        size: bytes as written.
    """

    entry: ledger.Entry
    first: datetime | None
    last: datetime | None
    size: int

    def overlaps(self, span: Interval) -> bool:
        """Whether any of its rows may have arrived in the interval."""
        return self.first is None or self.last is None or (self.first < span[1] and self.last >= span[0])


def runs_between(settings: "Settings", table: str, arrival: str, span: Interval) -> list[Run]:
    """The table's runs of which a row may have arrived in the interval, newest first.

    Args:
        arrival: the table's column with the time of arrival.
    """
    return [run for run in _runs(settings, table, arrival, history.within(*span)) if run.overlaps(span)]


def runs_of(settings: "Settings", table: str, arrival: str, ranges: Sequence[Range]) -> list[Run]:
    """The table's runs that took any of these offsets, newest first."""
    found = _runs(settings, table, arrival, history.containing(table, ranges))
    return [run for run in found if overlap(run.entry.ranges, ranges)]


def _runs(settings: "Settings", table: str, arrival: str, where: str) -> Iterator[Run]:
    for commit in history.recorded(settings, table, where):
        entry = ledger.entry(commit)
        if any(r.size for r in entry.ranges):
            yield Run(entry, *arrivals(commit, arrival), commit.size)


def arrivals(commit: "Commit", column: str) -> tuple[datetime | None, datetime | None]:
    """The first and the last value of a timestamp column in the files that a commit added, by their statistics."""
    lows = [f.get("minValues", {}).get(column) for f in commit.files]
    highs = [f.get("maxValues", {}).get(column) for f in commit.files]
    if not lows or None in (*lows, *highs):
        return None, None
    return _time(min(lows)), _time(max(highs)) + STATISTICS_STEP


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def hull(entries: Iterable[ledger.Entry], topic: str) -> list[Range]:
    """One range per partition from the start of the first entry to the end of the last: entries join without a gap."""
    return enclosing(r for entry in entries for r in entry.ranges if r.topic == topic)


def enclosing(ranges: Iterable[Range]) -> list[Range]:
    """One range per partition of a topic, from the lowest start to the highest end."""
    by_partition: dict[int, list[Range]] = {}
    for r in ranges:
        by_partition.setdefault(r.partition, []).append(r)
    return [
        Range(rs[0].topic, rs[0].topic_id, p, min(r.start for r in rs), max(r.end for r in rs))
        for p, rs in sorted(by_partition.items())
    ]


def overlap(ranges: Iterable[Range], others: Sequence[Range]) -> bool:
    """Whether any offset of a partition is in both."""
    by_partition = {r.partition: r for r in others if r.size}
    return any(
        r.size and (other := by_partition.get(r.partition)) and r.start < other.end and r.end > other.start
        for r in ranges
    )
