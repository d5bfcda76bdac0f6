"""Say why a key differs. Pure.

What should be there is known: the view over the very rows that gold's position covers, computed anew. So of each layer it is
known whether it is wrong, and a cause is only named where it proves to give the wrong row.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

LATE = "late"
DUPLICATE = "duplicate"
QUARANTINED = "quarantined"
NOT_YET_SEEN = "not yet seen"
OTHER_CODE = "other code version"
REPLAY = "replay in progress"
# These pass by themselves, so that their windows are looked at again.
PASSING = (NOT_YET_SEEN, REPLAY)


@dataclass(frozen=True)
class Difference:
    """One key that differs.

    Args:
        window_start: of its window, or of a keyed view the minute that it is counted in (UTC).
        key, live, batch: as JSON; a side that does not have it is None.
        kind: ``changed``, ``only_live``, ``only_batch`` or ``doubled``.
        doubled: the side that has it more than once.
        live_cause, batch_cause: why that side is wrong; empty: nobody knows. None: it is right.
    """

    window_start: datetime
    key: str
    kind: str
    live: str | None
    batch: str | None
    doubled: str | None = None
    live_cause: str | None = None
    batch_cause: str | None = None

    def __str__(self) -> str:
        sides = f"live {self.live or 'has none'}, batch {self.batch or 'has none'}"
        twice = f" ({self.doubled} has it more than once)" if self.doubled else ""
        return f"{self.key}: {sides}{twice}: {', '.join(self.causes) or 'no known cause'}"

    @property
    def causes(self) -> tuple[str, ...]:
        """The named causes."""
        return tuple(dict.fromkeys(cause for cause in (self.live_cause, self.batch_cause) if cause))

    @property
    def explained(self) -> bool:
        """Whether every side that is wrong has a named cause, and one is."""
        sides = [cause for cause in (self.live_cause, self.batch_cause) if cause is not None]
        return bool(sides) and all(sides)

    @property
    def corrected(self) -> bool:
        """Whether live was wrong for good, and batch has what is right."""
        return self.live_cause is not None and self.batch_cause is None and self.live_cause not in PASSING


def accuse(found: Difference, expected: str | None) -> Difference:
    """Find out which side is wrong."""
    live_wrong = found.doubled == "live" or found.live != expected
    batch_wrong = found.doubled == "batch" or found.batch != expected
    return replace(found, live_cause="" if live_wrong else None, batch_cause="" if batch_wrong else None)


def excuse(found: Difference, cause: str, rows: Mapping[str, str]) -> Difference:
    """Name the cause where live has exactly the row that it gives.

    Args:
        rows: by key, what the view says when the cause is at work.
    """
    fits = found.live_cause == "" and found.doubled != "live" and found.live == rows.get(found.key)
    return replace(found, live_cause=cause) if fits else found


def still_open(differences: Iterable[Difference]) -> bool:
    """Whether live is wrong somewhere for no known reason."""
    return any(one.live_cause == "" and one.doubled != "live" for one in differences)


@dataclass(frozen=True)
class Writers:
    """Whose definition the rows of either layer follow.

    Args:
        live: the instants (UTC) at which micro-batches were committed, oldest first, and whether another definition wrote each.
        batch: newest first, the interval (UTC; None: all) that a commit of gold wrote, and whether by another definition.
    """

    live: Sequence[tuple[datetime, bool]]
    batch: Sequence[tuple[tuple[datetime, datetime] | None, bool]]

    def other_live(self, written_at: datetime) -> bool:
        """Whether another definition wrote the row that was written then."""
        place = bisect_left(self.live, written_at, key=lambda one: one[0])
        return self.live[min(place, len(self.live) - 1)][1] if self.live else False

    def other_batch(self, instant: datetime) -> bool:
        """Whether another definition wrote gold's row of that instant."""
        return next((other for span, other in self.batch if span is None or span[0] <= instant < span[1]), False)


def beside(windows: Sequence[tuple[datetime, datetime]], start: datetime) -> datetime:
    """Of windows with the instant that each was last written at, sorted, the instant of this one, or of the one before it."""
    return windows[max(bisect_right(windows, start, key=lambda one: one[0]) - 1, 0)][1]


def blame_code(found: Difference, writers: Writers, written_at: datetime | None) -> Difference:
    """Name the code where another definition than today's wrote the row that is wrong.

    Args:
        written_at: when live wrote the row, or, where that is missing, those beside it (UTC).
    """
    if found.live_cause == "" and written_at and writers.other_live(written_at) and found.doubled != "live":
        found = replace(found, live_cause=OTHER_CODE)
    if found.batch_cause == "" and writers.other_batch(found.window_start) and found.doubled != "batch":
        found = replace(found, batch_cause=OTHER_CODE)
    return found


def wait_for_replay(found: Difference, held: Iterable[tuple[datetime, datetime]]) -> Difference:
    """Name the replay or backfill that is at work on the interval."""
    at_work = any(low <= found.window_start < high for low, high in held)
    return replace(found, live_cause=None, batch_cause=REPLAY) if at_work else found


def by_window(differences: Iterable[Difference]) -> dict[datetime, dict[str, Any]]:
    """Per window: ``verdict`` (``explained`` or ``unexplained``), ``causes`` and whether they are ``passing``."""
    windows: dict[datetime, dict[str, Any]] = {}
    for one in differences:
        found = windows.setdefault(one.window_start, {"verdict": "explained", "causes": [], "passing": False})
        found["causes"] = list(dict.fromkeys([*found["causes"], *one.causes]))
        found["passing"] |= any(cause in PASSING for cause in one.causes)
        if not one.explained:
            found["verdict"] = "unexplained"
    return windows
