"""Decide which side of a difference is wrong, and attribute it to a cause. Pure.

The correct row is known: the view is computed again over the rows that gold's position covers. So each layer is known to be
correct or wrong. A cause is named only if it produces the very row that is wrong.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lockstep.definition.view import Interval
from lockstep.reconcile.difference import Cause, Difference, Kind
from lockstep.reconcile.tolerance import EXACT, agree


def mark_within_error(difference: Difference, approximate: Mapping[str, str]) -> Difference:
    """Mark a key whose rows differ by no more than the error that they state.

    Args:
        approximate: the view's approximate columns, each with the column that has its error.
    """
    single = difference.kind is not Kind.DOUBLED
    within = single and agree(difference.live.row, difference.batch.row, approximate)
    return replace(difference, within_error=within)


def mark_wrong_sides(
    difference: Difference, expected: str | None, approximate: Mapping[str, str] = EXACT
) -> Difference:
    """Mark each side as correct or wrong.

    Args:
        expected: the row that the view computes for the key; None: there should be no row.
        approximate: as in :func:`mark_within_error`.
    """
    live, batch = difference.live, difference.batch
    return replace(difference, live=live.checked(expected, approximate), batch=batch.checked(expected, approximate))


def attribute_to(
    cause: Cause, difference: Difference, rows: Mapping[str, str], approximate: Mapping[str, str] = EXACT
) -> Difference:
    """Name the cause if live has exactly the row that the cause produces, or one within its stated error.

    Args:
        rows: by key, the rows that the view computes under the cause.
        approximate: as in :func:`mark_within_error`.
    """
    live = difference.live
    matches = live.attributable and agree(live.row, rows.get(difference.key), approximate)
    return replace(difference, live=live.wrong(cause)) if matches else difference


def attribute_to_replay(difference: Difference, claimed: Iterable[Interval]) -> Difference:
    """Name the replay or backfill that rewrites the interval. Batch's row is about to change, so live's is not checked.

    Args:
        claimed: the intervals ``[low, high)`` (UTC) that replays and backfills rewrite now.
    """
    rewritten = any(low <= difference.window_start < high for low, high in claimed)
    if not rewritten:
        return difference
    return replace(difference, live=difference.live.right(), batch=difference.batch.wrong(Cause.REPLAY))


@dataclass(frozen=True)
class Writers:
    """Which rows of each layer another definition of the view wrote.

    Args:
        live: the times (UTC) of live's micro-batch commits, oldest first, and whether another definition wrote each.
        batch: gold's commits, newest first: the interval (UTC; None: all) that each wrote, and whether another definition
            wrote it.
    """

    live: Sequence[tuple[datetime, bool]]
    batch: Sequence[tuple[Interval | None, bool]]

    def other_definition_live(self, written_at: datetime) -> bool:
        """Whether another definition wrote live's row of that time."""
        if not self.live:
            return False
        # A row is written shortly before its micro-batch is committed.
        commit = bisect_left(self.live, written_at, key=lambda commit: commit[0])
        return self.live[min(commit, len(self.live) - 1)][1]

    def other_definition_batch(self, instant: datetime) -> bool:
        """Whether another definition wrote gold's row of that instant."""
        return next((other for span, other in self.batch if span is None or span[0] <= instant < span[1]), False)


def attribute_to_definition(difference: Difference, writers: Writers, written_at: datetime | None) -> Difference:
    """Name the code version if another definition than today's wrote the row that is wrong.

    Args:
        written_at: when live wrote the row (UTC); if live has no row, see :func:`last_written`.
    """
    live, batch = difference.live, difference.batch
    if live.attributable and written_at and writers.other_definition_live(written_at):
        live = live.wrong(Cause.OTHER_CODE)
    if batch.attributable and writers.other_definition_batch(difference.window_start):
        batch = batch.wrong(Cause.OTHER_CODE)
    return replace(difference, live=live, batch=batch)


def last_written(windows: Sequence[tuple[datetime, datetime]], start: datetime) -> datetime:
    """When live last wrote the window, or, if it has no such window, the window before it.

    Args:
        windows: by start, sorted, when each window was last written. At least one.
        start: the start of the window.
    """
    return windows[max(bisect_right(windows, start, key=lambda window: window[0]) - 1, 0)][1]
