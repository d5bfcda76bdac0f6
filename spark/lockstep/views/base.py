"""What a view declares beside its one pure function, and what both layers do with it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Spark hands out naive UTC)


@dataclass(frozen=True)
class View:
    """A definition that runs as a Structured Streaming query and as a batch job, and must give the same.

    Args:
        name: the table's name in ``gold`` and ``live``.
        input: the contract it reads.
        transform: the definition: good, on-time, deduplicated rows in; one row per ``key`` out. Its output has
            ``window_start`` and ``window_end`` (TIMESTAMP, UTC, ``[start, end)``).
        columns: the output, as Spark DDL.
        key: the columns that identify a row of the output.
        event_time: the input's column that says when it happened.
        size: length of a window.
        slide: distance between the starts of two windows.
        allowed_lateness: a row is late when it arrived longer than this after it happened.
        policy: what becomes of late rows (see the design): left out, corrected, or set aside.
        state_kept: how long the engine keeps a window's state, in event time. Looser than the lateness, so that it never
            decides what is late; it must cover how far the partitions' event times drift apart.
    """

    name: str
    input: str
    transform: "Callable[[DataFrame], DataFrame]"
    columns: str
    key: tuple[str, ...]
    event_time: str
    size: timedelta
    slide: timedelta
    allowed_lateness: timedelta
    policy: Literal["ignore", "correct", "side_stream"] = "ignore"
    state_kept: timedelta = timedelta(hours=2)

    @property
    def on_time(self) -> str:
        """The predicate that both layers apply to a row, decided by the log alone."""
        seconds = self.allowed_lateness.total_seconds()
        return f"_arrival - {self.event_time} <= make_dt_interval(0, 0, 0, {seconds})"

    def windows_of(self, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        """The starts ``[low, high)`` of all windows that hold an event between two instants, both included (UTC)."""
        low = _floor(first - self.size, self.slide) + self.slide
        return low, _floor(last, self.slide) + self.slide


def _floor(instant: datetime, step: timedelta) -> datetime:
    return instant - (instant.replace(tzinfo=None) - EPOCH) % step
