"""Views over windows: aggregates of the rows of each window."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.mergeable import Mergeable, sql_of
from lockstep.definition.view import MICROSECOND, Definition, Grouping, Interval, Output, literal

if TYPE_CHECKING:
    from pyspark.sql import Column

# How long a stream's windows are kept, unless a view says otherwise: long enough for partitions of which one is behind.
STATE_KEPT = timedelta(hours=2)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Spark hands out naive UTC)


@dataclass(frozen=True, kw_only=True)
class Windowed(Definition):
    """A view whose rows belong to windows ``[window_start, window_end)``, aligned to the epoch.

    It has one row for each window that holds a row of its input, and each value of ``by``. Live it runs in update mode: a row is
    provisional until its window is closed, then final.

    Args:
        input: the contract it reads. Its rows are valid, each comes once, and only those count that are on time.
        where: which of them count (SQL).
        by: what has a row of its own in each window, beside the window: SQL expressions over a row, by name.
        measures: aggregates over the rows, by name: SQL, or :class:`~lockstep.definition.mergeable.Mergeable`, with which batch
            counts a row that is in several windows once.
        result: from such a row (a struct of ``window_start`` and ``window_end``, TIMESTAMP in UTC, ``by`` and the measures) to an
            array of the view's rows (structs of its columns); None: the row itself.
        size: length of a window.
        slide: distance between the starts of two windows. One shorter than the size makes them overlap; a longer one leaves gaps,
            whose rows are in no window.
        event_time: the input's column with the time of the event.
        state_kept: how long the engine keeps a window's state, in event time. It is longer than the lateness, so that the engine
            never decides what is late. It must cover the difference between the partitions' event times.
    """

    input: str
    measures: Mapping[str, str | Mergeable]
    size: timedelta
    slide: timedelta
    by: Mapping[str, str] = field(default_factory=dict)
    where: str = "true"
    result: "Callable[[Column], Column] | None" = None
    event_time: str = "event_time"
    state_kept: timedelta = STATE_KEPT

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.by, {name: sql_of(measure) for name, measure in self.measures.items()})

    @property
    def shared_job(self) -> str:
        return f"_windows_{self.input}"

    @property
    def may_share(self) -> bool:
        # One watermark drops the state of all views of a job.
        alike = self.event_time == CONTRACTS[self.input].event_time and self.state_kept == STATE_KEPT
        return super().may_share and alike

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
