"""A key on which the two layers differ: the row of each layer, which of them is wrong, and why. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

from lockstep.reconcile.tolerance import EXACT, agree


class Kind(StrEnum):
    """How the layers' rows of one key compare. ``ops.reconciliation`` has a column of each name."""

    EQUAL = "equal"
    CHANGED = "changed"
    DOUBLED = "doubled"
    ONLY_LIVE = "only_live"
    ONLY_BATCH = "only_batch"


class Cause(StrEnum):
    """Why a row is wrong. Tables, logs and JUnit show the value."""

    LATE = "late"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"
    NOT_YET_SEEN = "not yet seen"
    OTHER_CODE = "other code version"
    REPLAY = "replay in progress"

    @property
    def passing(self) -> bool:
        """Whether it goes away by itself. Its windows are compared again."""
        return self in (Cause.NOT_YET_SEEN, Cause.REPLAY)


@dataclass(frozen=True)
class Side:
    """The row that one layer has of a key.

    Args:
        row: the row as JSON; None: the layer has no row.
        doubled: whether the layer has the key more than once.
        correct: whether the layer has what the view computes. A side counts as correct until it is checked.
        cause: why the side is wrong; None: it is correct, or the cause is not known.

    Raises:
        ValueError: a correct side has a cause.
    """

    row: str | None
    doubled: bool = False
    correct: bool = True
    cause: Cause | None = None

    def __post_init__(self) -> None:
        if self.correct and self.cause:
            raise ValueError(f"A correct side has no cause, but this one has {self.cause.value!r}: call Side.wrong().")

    @property
    def unexplained(self) -> bool:
        """Whether it is wrong and the cause is not known."""
        return not self.correct and self.cause is None

    @property
    def attributable(self) -> bool:
        """Whether a cause can still be found. No cause writes a key twice, so a doubled side stays unexplained."""
        return self.unexplained and not self.doubled

    def checked(self, expected: str | None, approximate: Mapping[str, str] = EXACT) -> Self:
        """Mark the side as correct or wrong.

        Args:
            expected: the row that the view computes; None: there should be no row.
            approximate: the approximate columns, each with the column that has its error.
        """
        return replace(self, correct=agree(self.row, expected, approximate) and not self.doubled, cause=None)

    def right(self) -> Self:
        """Mark the side as correct."""
        return replace(self, correct=True, cause=None)

    def wrong(self, cause: Cause | None = None) -> Self:
        """Mark the side as wrong, with its cause if it is known."""
        return replace(self, correct=False, cause=cause)


@dataclass(frozen=True)
class Difference:
    """One key that differs.

    Args:
        window_start: the start of its window; for a keyed view, of the minute in which it is compared (UTC).
        key: the key as JSON.
        within_error: whether the rows differ by no more than the error that they state. Then neither is wrong.
    """

    window_start: datetime
    key: str
    kind: Kind
    live: Side
    batch: Side
    within_error: bool = False

    def __str__(self) -> str:
        rows = f"live {self.live.row or 'has none'}, batch {self.batch.row or 'has none'}"
        twice = "".join(
            f" ({layer} has it more than once)"
            for layer, side in (("live", self.live), ("batch", self.batch))
            if side.doubled
        )
        reason = "within the stated error" if self.within_error else ", ".join(self.causes) or "no known cause"
        return f"{self.key}: {rows}{twice}: {reason}"

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes that are known, each once."""
        return tuple(dict.fromkeys(side.cause for side in (self.live, self.batch) if side.cause))

    @property
    def explained(self) -> bool:
        """Whether the rows are within their stated error, or the cause of every wrong side is known and a side is wrong."""
        if self.within_error:
            return True
        wrong = [side for side in (self.live, self.batch) if not side.correct]
        return bool(wrong) and not any(side.unexplained for side in wrong)

    @property
    def is_settled(self) -> bool:
        """Whether the next run need not look at it again."""
        return self.explained and not any(cause.passing for cause in self.causes)

    @property
    def corrected(self) -> bool:
        """Whether batch's row corrects live's: live is wrong, does not become right by itself, and batch is correct."""
        passing = self.live.cause is not None and self.live.cause.passing
        return not self.live.correct and self.batch.correct and not passing
