"""What a view declares beside its one pure definition, and what both layers do with it.

There are two kinds. A :class:`~lockstep.definition.windowed.Windowed` view is a function ``DataFrame -> DataFrame`` over
windows. A :class:`~lockstep.definition.keyed.Keyed` view is a state machine for each key. Both run live and in batch, and must
give the same.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Self

Policy = Literal["ignore", "correct", "side_output"]
# Before every event: where a view that is computed as a whole begins.
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Definition(ABC):
    """A definition that runs as a Structured Streaming query and as a batch job.

    Args:
        name: the table's name in ``gold``, ``live``, ``late`` and ``serving``.
        columns: the output, as Spark DDL: ``name TYPE`` with a comma and a blank in between, and no blank after commas
            inside of types.
        key: the columns that identify a row of the output.
        allowed_lateness: a row is late when it arrived longer than this after it happened.
        policy: what becomes of late rows: left out (``ignore``), set aside (``side_output``), or, for windows, counted until
            ``correct_within`` has passed (``correct``). Under all three they can be read in ``late.<name>``.
        correct_within: the second, longer limit of ``correct``.
    """

    name: str
    columns: str
    key: tuple[str, ...]
    allowed_lateness: timedelta
    policy: Policy = "ignore"
    correct_within: timedelta | None = None

    @property
    @abstractmethod
    def streams(self) -> tuple[str, ...]:
        """The names of the contracts that it reads."""

    @property
    @abstractmethod
    def times(self) -> dict[str, str]:
        """By stream, the SQL expression for when a row happened; empty for a table's changes, which are never late."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the output's columns."""
        return tuple(column.split()[0] for column in self.columns.split(", "))

    @property
    def limit(self) -> timedelta:
        """How late a row may be and still count."""
        return self.correct_within if self.policy == "correct" and self.correct_within else self.allowed_lateness

    def with_late(self) -> Self:
        """The same view, in which rows count however late they came: what a replay merges late rows by."""
        return replace(self, policy="correct", correct_within=timedelta(days=36_500))

    def counts(self, time: str) -> str:
        """The predicate (SQL) by which both layers take a row that happened at the column ``time``: decided by the log alone."""
        return f"_arrival - {time} <= make_dt_interval(0, 0, 0, {self.limit.total_seconds()})"

    def late(self, time: str) -> str:
        """The predicate (SQL) for a late row, whether it still counts or not."""
        return f"_arrival - {time} > make_dt_interval(0, 0, 0, {self.allowed_lateness.total_seconds()})"
