"""The machine of one key: what it remembers, and how it goes on. Pure, and the same in both layers."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lockstep.definition import states
from lockstep.definition.keyed import Event, Keyed, Row, advance
from lockstep.definition.map_state import Opened, Texts, needed
from lockstep.errors import LockstepError


class MachineFailed(LockstepError):
    """The code of a view raised an error."""


# For so long, and at most for twice as long (by the times of the commits), it is remembered which changes were processed. A
# source that was killed sends again what it sent in its last seconds, and a delete that refine writes for a TRUNCATE comes a
# cycle or two of the batch layer after it. All of it is written again with each micro-batch that has a change for the machine: a
# product with a sale each few seconds would pay for a month of them.
SEEN_FOR = timedelta(minutes=15)
# Since when, the positions by id since then, and those of the time before.
Seen = list[Any]
_NOTHING: Mapping[int, str] = {}


@dataclass
class Machine:
    """What is kept of a machine, as JSON, beside the buckets of its map state.

    Args:
        state: the view's, without its map state.
        revision: of its last row.
        seen: what is remembered of a table's changes, by stream: since when, and the position of each row's newest change by the
            row's id, since then and in the time before.
        due: in the live layer, when the earliest of its timers that wait is due (milliseconds, UTC).
        entries: how many its map state has.
        buckets: in how many buckets these are.
    """

    state: Any = None
    revision: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)
    due: int | None = None
    entries: int = 0
    buckets: int = 1

    @staticmethod
    def load(text: str | None) -> "Machine":
        """The machine of a text, or a new one."""
        return Machine(**states.loads(text)) if text else Machine()

    def dump(self) -> str:
        """Its text."""
        return states.dumps({name: value for name, value in vars(self).items() if value != _NEW[name]})

    def needed(self, view: Keyed, events: list[Event]) -> Collection[int]:
        """The buckets of its map state that it needs to process the events."""
        with _failing(view):
            return needed(view.map_state, events, self.entries, self.buckets) if view.map_state else ()

    def run(
        self, view: Keyed, events: list[Event], until: datetime | None, stored: Mapping[int, str] = _NOTHING
    ) -> tuple[list[Row], Texts]:
        """Process the events, and the timers before ``until``.

        Args:
            stored: the texts of the needed buckets of its map state.

        Returns:
            The new rows, and the buckets that have changed.

        Raises:
            MachineFailed: the view's code failed.
        """
        changed: Texts = {}
        with _failing(view):
            if view.map_state is None:
                self.state, rows = advance(view, self.state, _newer(self.seen, events), until)
            else:
                opened = Opened(view.map_state, events, self.entries, self.buckets, stored)
                state = self.state if self.state is None else self.state | {view.map_state.name: opened.entries}
                rows = []
                for event in _newer(self.seen, events):
                    state, new = advance(view, state, [event], None)
                    rows += new
                    if state is None:
                        opened.forget()
                changed = opened.close(state.pop(view.map_state.name) if state is not None else {})
                self.state, self.entries, self.buckets = state, opened.size, opened.buckets
        self.revision += len(rows)
        return rows, changed

    def all_removed(self) -> Texts:
        """What removes the buckets of its map state."""
        return dict.fromkeys(range(self.buckets if self.entries else 0))

    def next_timer(self, view: Keyed) -> datetime | None:
        """When the view wants to act although no event comes."""
        with _failing(view):
            return view.timer(self.state) if self.state is not None else None

    def is_over(self, upserts: bool) -> bool:
        """Whether nothing of it has to be kept. The rows of a view that upserts are numbered for ever."""
        return self.state is None and not self.seen and not upserts


_NEW = vars(Machine())


@contextmanager
def _failing(view: Keyed) -> Iterator[None]:
    """Say of which view the code is that failed."""
    try:
        yield
    except Exception as error:
        raise MachineFailed(failure(view.name, error)) from error


def failure(view: str, error: Exception) -> str:
    """The message of a view that failed. :func:`found_failure` finds it in Spark's report of it."""
    return f"the machine of view {view} failed: {type(error).__name__}: {error}"


def found_failure(report: str) -> tuple[str, str] | None:
    """The view whose code failed, and its message, in the text of a query's error; None if it was something else."""
    match = re.search(r"the machine of view (\w+) failed: [^\n]*", report)
    return (match[1], match[0]) if match else None


def _newer(seen: dict[str, Seen], events: list[Event]) -> Iterator[Event]:
    """Leave out changes that are not newer than the newest ``seen`` change of their row, and write the others into ``seen``."""
    for one in events:
        if one.position is not None:
            since, newest, before = seen.get(one.stream) or [one.time, {}, {}]
            if one.position <= max(newest.get(one.id, ""), before.get(one.id, "")):
                continue
            if one.time - since > SEEN_FOR:
                since, newest, before = one.time, {}, newest
            newest[one.id] = one.position
            seen[one.stream] = [since, newest, before]
        yield one


def as_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of machines, also such as came out of a text, in the columns of a schema; missing values are null. Pure."""
    given = [*rows]
    columns = [_column([row.get(field.name) for row in given], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    # JSON does not tell numbers with a fraction from decimals.
    exact = [value if value is None else float(value) for value in values] if pa.types.is_floating(kind) else values
    return pa.array(exact, kind)
