"""What a task of a DAG did with each of its tables. Airflow shows it on the page of the run, in the tab *Tables*.

The results are an XCom of the task, so they live as long as its run. ``infra/airflow/plugins`` has the tab.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
# Of one item, with a Spark session, the settings and the id of the run.
Work = Callable[[Any, Any, Item, str], Value | None]

# The key of the XCom.
KEY = "tables"
# The name of the row that says why a task failed as a whole.
WHOLE_TASK = "the whole task"
# Spark's messages have pages. The first of them says what is wrong, and the log of the task has the rest.
_LONGEST_DETAIL = 4000


class Outcome(StrEnum):
    """What became of a table in a run, the most urgent first."""

    FAILED = "failed"
    REFUSED = "refused"  # what a person asked for cannot be done
    LATE = "late"  # it lags further than it may
    WAITING = "waiting"
    DONE = "done"
    NOTHING_NEW = "nothing new"


# Of these, the row says why the task failed.
_REASONS = {Outcome.FAILED, Outcome.REFUSED}


@dataclass(frozen=True)
class TableResult:
    """What became of one table.

    Args:
        table: ``layer.name``, or the name of what else the task works on, such as a model.
        rows: how many rows were written or checked; None where nobody counts them.
        seconds: how long it took; None where it is not known.
        detail: why it failed or waits, or what was done, for people.
    """

    table: str
    outcome: Outcome
    rows: int | None = None
    seconds: float | None = None
    detail: str = ""


class Results:
    """The results of one task, one for each table. Threads may add to it."""

    def __init__(self) -> None:
        self._by_table: dict[str, TableResult] = {}

    def add(self, *results: TableResult) -> None:
        """Add results. The newest one of a table counts."""
        self._by_table |= {result.table: result for result in results}

    def each(
        self,
        work: "Work[Item, Value]",
        table_of: Callable[[Item], str],
        describe: Callable[[str, Any], TableResult],
    ) -> "Work[Item, Value]":
        """The same work, which adds a result for its item: of what it returns or raises, and how long it took.

        Args:
            describe: the result for a table and what the work has returned. If that is None, nothing was new.
        """

        def recorded(spark: Any, settings: Any, item: Item, run_id: str) -> Value | None:
            table, began = table_of(item), time.monotonic()
            try:
                value = work(spark, settings, item, run_id)
            except Exception as error:
                self.add(TableResult(table, Outcome.FAILED, seconds=_since(began), detail=str(error)))
                raise
            result = TableResult(table, Outcome.NOTHING_NEW) if value is None else describe(table, value)
            self.add(replace(result, seconds=_since(began)))
            return value

        return recorded

    def nothing_new(self, tables: Iterable[str]) -> None:
        """Say of these tables that nothing was new, unless there is a result."""
        for table in tables:
            self._by_table.setdefault(table, TableResult(table, Outcome.NOTHING_NEW))

    def late(self, tables: Mapping[str, str]) -> None:
        """Mark tables as late, each with a line that says by what. One that failed or waits stays so, because that is why."""
        for table, line in tables.items():
            known = self._by_table.get(table, TableResult(table, Outcome.LATE))
            outcome = known.outcome if known.outcome in {Outcome.FAILED, Outcome.WAITING} else Outcome.LATE
            self.add(replace(known, outcome=outcome, detail="; ".join(filter(None, (known.detail, line)))))

    def failed(self, error: Exception) -> None:
        """Say why the task failed, unless the result of a table does."""
        if not any(result.outcome in _REASONS for result in self._by_table.values()):
            self.add(TableResult(WHOLE_TASK, Outcome.FAILED, detail=f"{type(error).__name__}: {error}"))

    def as_rows(self) -> list[dict[str, Any]]:
        """The results as the page reads them, the most urgent first."""
        urgency = list(Outcome)
        ordered = sorted(self._by_table.values(), key=lambda result: urgency.index(result.outcome))
        return [
            asdict(r)
            | {"detail": r.detail[:_LONGEST_DETAIL], "outcome": r.outcome.value, "urgency": urgency.index(r.outcome)}
            for r in ordered
        ]


def _since(began: float) -> float:
    return round(time.monotonic() - began, 2)
