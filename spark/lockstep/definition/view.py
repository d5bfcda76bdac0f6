"""What every view declares, and how it behaves.

There are two kinds. A :class:`~lockstep.definition.windowed.Windowed` view has aggregates of the rows of each window. A
:class:`~lockstep.definition.keyed.Keyed` view is a state machine for each key. Both run live and in batch, and must give the same
rows in both.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal, Self

from lockstep.contracts import CONTRACTS
from lockstep.definition.alerting import Alerting, Overload
from lockstep.definition.columns import Columns

Policy = Literal["ignore", "correct", "side_output"]
Interval = tuple[datetime, datetime]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Before and after every event: the interval of a view that is computed as a whole.
BEGINNING = EPOCH
END = datetime(9999, 12, 31, tzinfo=UTC)
# The resolution of Spark's timestamps: an end that is included has passed one such step later.
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Grouping:
    """What Spark's state of windows consists of, in SQL: see :class:`~lockstep.definition.windowed.Windowed`."""

    by: Mapping[str, str]
    measures: Mapping[str, str]


class Output(StrEnum):
    """What a view writes live: windows that change until they are closed, final rows, or the newest row of each key."""

    WINDOWS = "windows"
    APPEND = "append"
    UPSERT = "upsert"


@dataclass(frozen=True, kw_only=True)
class Definition(ABC):
    """A definition that runs as a Structured Streaming query and as a batch job.

    Args:
        name: the table's name in ``gold``, ``live``, ``late`` and ``serving``.
        columns: the output's columns, in order, and their Spark types.
        key: the columns that identify a row of the output.
        allowed_lateness: a row is late when it arrived longer than this after it happened.
        policy: what happens to late rows: left out (``ignore``), kept as a side output (``side_output``), or, for windows,
            counted until ``correct_within`` has passed (``correct``). Under all three they can be read in ``late.<name>``.
        correct_within: the second, longer limit of ``correct``.
        state_partitions: in how many partitions its live query keeps its state. Each costs a task in every micro-batch, so a
            stream needs more than one only when one core cannot process it.
        alerts: how its rows are sent as alerts; None: they are not.
        approximate: the columns that a sketch gives, each with the column that states by how much it may be off. Reconciliation
            compares them within these errors (0: exactly), and all other columns exactly.
        max_lag: `lockstep status` names the view as a problem when gold or the live query has not read a record that is older
            than this; None: the setting ``max_lag_seconds``.
        description: what one row says, in plain sentences.
        column_descriptions: what columns mean, by name. A column without one has that of the column of the same name in a
            stream that the view reads.
    """

    name: str
    columns: Columns
    key: tuple[str, ...]
    allowed_lateness: timedelta
    policy: Policy = "ignore"
    correct_within: timedelta | None = None
    state_partitions: int = 1
    alerts: Alerting | None = None
    approximate: Mapping[str, str] = field(default_factory=dict)
    max_lag: timedelta | None = None
    description: str = ""
    column_descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    @abstractmethod
    def streams(self) -> tuple[str, ...]:
        """The names of the contracts that it reads."""

    @property
    @abstractmethod
    def times(self) -> dict[str, str]:
        """By stream, the SQL expression for the time of an event; empty for a table's changes, which are never late."""

    @property
    @abstractmethod
    def output(self) -> Output:
        """Whether live rows are windows, final, or upserted."""

    @property
    @abstractmethod
    def time_column(self) -> str:
        """The column of the output with the time of a row: the start of its window, or its instant."""

    @property
    @abstractmethod
    def reach(self) -> timedelta:
        """How long after the time of a row one of its events may still arrive."""

    @property
    @abstractmethod
    def shared_job(self) -> str:
        """The name of the job that its live query shares with other views, if it may. No view has it: it begins with ``_``."""

    @property
    def may_share(self) -> bool:
        """Whether its live query may be one with those of other views."""
        # A view with several state partitions is large, and one whose receivers may stop it would stop the others.
        stops = self.alerts is not None and self.alerts.overload is Overload.BACKPRESSURE
        # One that has to ask a registry for a new schema stops while it does not answer.
        asks = any(CONTRACTS[stream].by_registry for stream in self.streams)
        return self.state_partitions == 1 and not stops and not asks

    @property
    def grouping(self) -> Grouping | None:
        """What the state of its live query consists of; None of a state machine, whose state is its own."""
        return None

    @property
    @abstractmethod
    def keeps_until(self) -> bool:
        """Whether gold's ledger records, as ``until``, up to when rows are final; if not, that follows from its offsets."""

    @property
    @abstractmethod
    def has_machines(self) -> bool:
        """Whether its rows come out of a state machine for each key, which both layers keep."""

    @property
    @abstractmethod
    def comparison_window(self) -> tuple[str, timedelta]:
        """The window in which a row is compared: the SQL expression for its start, and its length."""

    @abstractmethod
    def final_before(self, until: datetime) -> str:
        """The predicate (SQL) for the rows that are final once every partition's log has passed ``until`` and the lateness."""

    @abstractmethod
    def closed(self, since: datetime, until: datetime) -> str:
        """The predicate (SQL) for the rows that became final from ``since`` to ``until`` (UTC)."""

    @abstractmethod
    def touched_by(self, first: datetime, last: datetime) -> Interval:
        """The times ``[low, high)`` (UTC) of all rows that events between two instants, both included, can change."""

    @property
    def upserts(self) -> bool:
        """Whether later rows of a key replace earlier ones, because it reads a table; else all rows are final, and kept."""
        return self.output is Output.UPSERT

    @property
    def output_columns(self) -> Columns:
        """The columns of the view's table in the batch layer."""
        return self.columns

    @property
    def live_columns(self) -> Columns:
        """The columns of the view's table in the live layer: those of gold, and when the row was written."""
        return {**self.output_columns, "_updated_at": "TIMESTAMP"}

    @property
    def lookback_time(self) -> timedelta:
        """How long before a row the events may have happened that it depends on; see also ``needs_all_history``."""
        return timedelta(0)

    @property
    def needs_all_history(self) -> bool:
        """Whether a row may depend on any event before it."""
        return False

    @property
    def overlap(self) -> timedelta:
        """How long a row's window goes on after the next one has begun."""
        return timedelta(0)

    @property
    def limit(self) -> timedelta:
        """How late a row may be and still count."""
        return self.correct_within if self.policy == "correct" and self.correct_within else self.allowed_lateness

    def with_late(self) -> Self:
        """The same view, in which every row counts, however late. A replay that merges late rows uses it."""
        return replace(self, policy="correct", correct_within=timedelta(days=36_500))

    @property
    def arrived_by(self) -> tuple[str, ...]:
        """The columns of which the latest is when a row arrived: its Kafka timestamp."""
        return ("_arrival",)

    @property
    def arrival(self) -> str:
        """When a row arrived (SQL)."""
        columns = self.arrived_by
        return columns[0] if len(columns) == 1 else f"greatest({', '.join(columns)})"

    def counts(self, time: str) -> str:
        """The predicate (SQL) for a row that counts, by its event time (column ``time``) and its arrival. Both layers use it."""
        return f"{self.arrival} - {time} <= make_dt_interval(0, 0, 0, {self.limit.total_seconds()})"

    def late(self, time: str) -> str:
        """The predicate (SQL) for a late row, whether it still counts or not."""
        return f"{self.arrival} - {time} > make_dt_interval(0, 0, 0, {self.allowed_lateness.total_seconds()})"

    def interval(self, low: datetime, high: datetime) -> str:
        """The predicate (SQL) for the rows of ``[low, high)`` (UTC). An upserted view is always whole."""
        if self.upserts:
            return "true"
        return f"{self.time_column} >= '{_plain(low)}' AND {self.time_column} < '{_plain(high)}'"

    def bounded(self, start: datetime, end: datetime, until: datetime) -> Interval:
        """The interval up to where gold is final: a view that ``keeps_until`` has no rows after that."""
        if not self.keeps_until:
            return start, end
        # An upserted view is recomputed as a whole, so it must not end before the rows that it has.
        return start, until if self.upserts else min(end, until)

    def first_row_at(self, at: datetime) -> datetime:
        """The first time at or after ``at`` that a row of the view may have."""
        return at

    def windows_between(self, first: datetime, last: datetime) -> int | None:
        """The greatest number of windows that start between two instants; None for a view without windows."""
        del first, last
        return None


def literal(moment: datetime) -> str:
    """A moment as a SQL literal with its time zone, because a reader's session may have another one."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%F %T.%f}+00:00'"


def _plain(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
