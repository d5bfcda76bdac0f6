"""Which rows of a view an environment and production can be compared in. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep.definition.view import BEGINNING, literal

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.definition import View


@dataclass(frozen=True)
class Extent:
    """The rows that both have as final, and of which the sample has all that they depend on.

    Args:
        low: the time (UTC) of the first rows.
        until: rows that are final before this instant (UTC); None: of an upserted view, which is compared as a whole.
        lacks_history: the view's rows may depend on any event, and the sample lacks the first ones.
    """

    low: datetime
    until: datetime | None
    lacks_history: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there are no such rows."""
        return self.until is not None and self.until <= self.low

    def where(self, view: "View") -> str:
        """The predicate (SQL) for these rows."""
        if self.until is None:
            return "true"
        return f"{view.time_column} >= {literal(self.low)} AND {view.final_before(self.until)}"

    def __str__(self) -> str:
        if self.until is None:
            return "all rows"
        return f"{f'{self.low:%F %T}' if self.low > BEGINNING else 'the first'} to {self.until:%F %T}"


def extent(
    view: "View", contracts: "Iterable[Contract]", since: datetime, complete: bool, until: datetime | None
) -> Extent:
    """The rows of a view that can be compared.

    Args:
        contracts: those of the view's streams.
        since: the instant (UTC) at which the sample begins: it has every record with a later Kafka timestamp.
        complete: it has all records that there ever were.
        until: the instant (UTC) before which both are final.
    """
    # An event that is missing arrived before the sample, and may have happened so much later than it arrived.
    skews = [contract.max_clock_skew for contract in contracts if contract.kind == "events"]
    first = since + max(skews) + view.lookback_time if skews else since
    low = BEGINNING if complete else view.first_row_at(first)
    return Extent(low, None if view.upserts else until or BEGINNING, view.needs_all_history and not complete)
