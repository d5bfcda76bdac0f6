"""Views over windows: one pure function ``DataFrame -> DataFrame``."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.definition.view import MICROSECOND, Definition, Interval, Output, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Spark hands out naive UTC)


@dataclass(frozen=True, kw_only=True)
class Windowed(Definition):
    """A view whose rows belong to windows ``[window_start, window_end)``, aligned to the epoch.

    Live it runs in update mode: a row is provisional until its window is closed, then final.

    Args:
        input: the contract it reads.
        transform: the definition: good, deduplicated rows that count in; one row per ``key`` out. Its output has
            ``window_start`` and ``window_end`` (TIMESTAMP, UTC).
        size: length of a window.
        slide: distance between the starts of two windows.
        event_time: the input's column with the time of the event.
        state_kept: how long the engine keeps a window's state, in event time. It is longer than the lateness, so that the engine
            never decides what is late. It must cover the difference between the partitions' event times.
    """

    input: str
    transform: "Callable[[DataFrame], DataFrame]"
    size: timedelta
    slide: timedelta
    event_time: str = "event_time"
    state_kept: timedelta = timedelta(hours=2)

    @property
    def streams(self) -> tuple[str, ...]:
        return (self.input,)

    @property
    def times(self) -> dict[str, str]:
        return {self.input: self.event_time}

    @property
    def output(self) -> Output:
        return Output.WINDOWS

    @property
    def time_column(self) -> str:
        return "window_start"

    @property
    def reach(self) -> timedelta:
        return self.limit + self.size

    @property
    def has_machines(self) -> bool:
        return False

    @property
    def keeps_until(self) -> bool:
        return False

    @property
    def comparison_window(self) -> tuple[str, timedelta]:
        return "window_start", self.size

    @property
    def overlap(self) -> timedelta:
        return self.size - self.slide

    def final_before(self, until: datetime) -> str:
        return f"window_end <= {literal(until)}"

    def closed(self, since: datetime, until: datetime) -> str:
        return f"window_end > {literal(since)} AND window_end <= {literal(until)}"

    def touched_by(self, first: datetime, last: datetime) -> Interval:
        return self.windows_of(first, last)

    def first_row_at(self, at: datetime) -> datetime:
        before = at - MICROSECOND
        return self.windows_of(before, before)[1]

    def windows_between(self, first: datetime, last: datetime) -> int:
        return max(0, -((first - last) // self.slide))

    @property
    def on_time(self) -> str:
        """The predicate (SQL) for a row that counts."""
        return self.counts(self.event_time)

    def windows_of(self, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        """The starts ``[low, high)`` of all windows that hold an event between two instants, both included (UTC)."""
        low = _floor(first - self.size, self.slide) + self.slide
        return low, _floor(last, self.slide) + self.slide


def _floor(instant: datetime, step: timedelta) -> datetime:
    return instant - (instant.replace(tzinfo=None) - EPOCH) % step
