"""Views that are a state machine for each key: sessions, joins, patterns, and tables joined to streams. Pure.

The machine is plain Python, and the same object runs in both layers. *Events* reach it in the order in which they happened, as
soon as no event that is on time can come before them: so the order of arrival does not change the result. *Changes* of a table
(Debezium) reach it as soon as they are read, in the order of the source's commits. A view that reads changes must give the same
last row of each key however changes and events interleave, and its output is upserted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import Columns
from lockstep.definition.map_state import MapState
from lockstep.definition.view import END, MICROSECOND, Definition, Interval, Output, literal

State = Any
Row = dict[str, Any]


@dataclass(frozen=True, order=True)
class Event:
    """One input row as a machine gets it.

    Args:
        time: when it happened (UTC, aware).
        id: its unique id, which orders events of one instant; of a change, the unique id of its row.
        stream: the contract's name.
        data: the columns that the input declares, as JSON has them: numbers with a fraction are ``Decimal``, timestamps are ISO
            strings (UTC, with microseconds), which sort as the times do. Changes also have ``_deleted``.
        position: of a change, where it stands in the source's log, as text that sorts in the log's order; None for an event.
    """

    time: datetime
    id: str
    stream: str
    data: Mapping[str, Any] = field(compare=False)
    position: str | None = field(default=None, compare=False)

    @property
    def is_change(self) -> bool:
        """Whether it is a change of a table."""
        return self.position is not None


@dataclass(frozen=True)
class Input:
    """One stream that a keyed view reads.

    Args:
        stream: the contract's name.
        key: SQL expression (STRING) for the machine that gets the row.
        columns: what the machine sees of a row.
        time: when it happened: a column or SQL expression (TIMESTAMP).
        where: SQL predicate for the rows that matter.
        keys: in the place of ``key``, SQL expression (ARRAY<STRING>) for all the machines that get the row.

    When an update of a table moves a row to another key, the machine of the old key gets a delete: ``_deleted``, with the row
    before the update.
    """

    stream: str
    key: str = ""
    columns: tuple[str, ...] = ()
    time: str = "event_time"
    where: str = "true"
    keys: str = ""

    @property
    def machines(self) -> str:
        """SQL expression (ARRAY<STRING>) for the machines that get the row."""
        return self.keys or f"array({self.key})"

    @property
    def is_table(self) -> bool:
        """Whether its rows are changes of a table."""
        return CONTRACTS[self.stream].kind == "changes"


def _never(_: State) -> datetime | None:
    return None


def _nothing(state: State, _: datetime) -> tuple[State, list[Row]]:
    return state, []


@dataclass(frozen=True, kw_only=True)
class Keyed(Definition):
    """A view whose rows come out of one state machine per key.

    A state is kept as JSON: dicts, lists, strings, numbers, booleans, None, and also ``datetime`` (UTC) and ``Decimal``. A
    machine starts with the state ``None``, and is removed when it returns it. All of it is read and written again where a key has
    events: what may become large is a ``map_state``.

    Args:
        inputs: the streams that it reads.
        process: ``(state, event) -> (state, rows)``, for each event in order. Rows are dicts of ``columns``, without ``at``.
        timer: when the machine must act although no event comes (session gap, expiry of a join), or None.
        on_timer: ``(state, at) -> (state, rows)``, called when the timer ``at`` has come, before the events of that instant. The
            state that it returns must have a later timer, or none.
        lookback: no row depends on events that happened longer than this before it; None: all of history counts.
        map_state: the dict in the state of which an event touches a few entries. A view with a timer has none.
    """

    inputs: tuple[Input, ...]
    process: Callable[[State, Event], tuple[State, list[Row]]]
    timer: Callable[[State], datetime | None] = _never
    on_timer: Callable[[State, datetime], tuple[State, list[Row]]] = _nothing
    lookback: timedelta | None = None
    map_state: MapState | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(read.stream for read in self.inputs))

    @property
    def times(self) -> dict[str, str]:
        return {read.stream: "" if read.is_table else read.time for read in self.inputs}

    @property
    def output(self) -> Output:
        return Output.UPSERT if any(read.is_table for read in self.inputs) else Output.APPEND

    @property
    def time_column(self) -> str:
        return "at"

    @property
    def reach(self) -> timedelta:
        return self.limit

    @property
    def keeps_until(self) -> bool:
        return True

    @property
    def has_machines(self) -> bool:
        return True

    @property
    def shared_job(self) -> str:
        return "_keyed"

    @property
    def arrived_by(self) -> tuple[str, ...]:
        # Behind its partition's watermark the rows of a machine are final.
        return ("_arrival", "_watermark")

    @property
    def comparison_window(self) -> tuple[str, timedelta]:
        return "date_trunc('minute', at)", timedelta(minutes=1)

    @property
    def output_columns(self) -> Columns:
        return {"at": "TIMESTAMP", **self.columns}

    @property
    def live_columns(self) -> Columns:
        return {**self.output_columns, "_revision": "BIGINT", "_updated_at": "TIMESTAMP"}

    @property
    def lookback_time(self) -> timedelta:
        return self.lookback or timedelta(0)

    @property
    def needs_all_history(self) -> bool:
        return self.upserts or self.lookback is None

    def final_before(self, until: datetime) -> str:
        return f"at < {literal(until)}"

    def closed(self, since: datetime, until: datetime) -> str:
        # Rows that are upserted are never closed: all of them are compared.
        return "true" if self.upserts else f"at >= {literal(since)} AND at < {literal(until)}"

    def touched_by(self, first: datetime, last: datetime) -> Interval:
        return first, END if self.lookback is None else last + self.lookback + MICROSECOND


def in_log_order(events: Iterable[Event]) -> list[Event]:
    """The changes among the events, in the order of the source's log."""
    return sorted((e for e in events if e.is_change), key=lambda e: (e.position, e.id))


def advance(view: Keyed, state: State, events: Iterable[Event], until: datetime | None) -> tuple[State, list[Row]]:
    """Give a key's events to its machine, in order, and call its timers.

    Args:
        events: sorted; none happened before an earlier call's ``until``.
        until: also call the timers before this instant; None: only those before the events.

    Returns:
        The state, and the rows with ``at``: the instant (UTC) of the event or timer that they came from.

    However a key's events are divided among calls, the rows are the same. Both layers rely on this property.
    """
    rows: list[Row] = []
    for event in events:
        if not event.is_change:
            state = _fire_timers(view, state, event.time, rows, including=True)
        state, new = view.process(state, event)
        rows += ({"at": event.time} | row for row in new)
    if until is not None:
        state = _fire_timers(view, state, until, rows, including=False)
    return state, rows


def _fire_timers(view: Keyed, state: State, until: datetime, rows: list[Row], including: bool) -> State:
    while state is not None:
        at = view.timer(state)
        if at is None or at > until or (at == until and not including):
            break
        state, new = view.on_timer(state, at)
        rows += ({"at": at} | row for row in new)
    return state


def final(view: Keyed, rows: list[Row]) -> list[Row]:
    """The rows that remain, of rows in the order in which a machine gave them: all, or each key's last where the view upserts."""
    return last_of_each_key(rows, view.key) if view.upserts else rows


def last_of_each_key(rows: list[Row], key: tuple[str, ...]) -> list[Row]:
    """Of the rows with the same values in some columns, the last one."""
    return [*{tuple(row[k] for k in key): row for row in rows}.values()]
