"""A keyed view's machines inside Spark: state and waiting events in the state store, timers on the log's own time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from lockstep.definition import states
from lockstep.definition.events import event
from lockstep.definition.keyed import Event, Keyed, advance

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ("_time", "_id", "_stream", "_change", "_data")
NEW: dict[str, Any] = {"state": None, "revision": 0, "seen": {}}


class Machine(StatefulProcessor):
    """Holds each event back until the watermark, which is the log's own time, says that nothing on time can precede it.

    Changes of a table are taken as they come, unless a newer one of the same row was taken before.

    Kept per key: ``pending``, the events that wait; ``machine``, a JSON object of the view's ``state``, the ``revision`` of its
    last row, and the last change ``seen`` of each row of a table.
    """

    def __init__(self, view: Keyed) -> None:
        self.view = view

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self.handle = handle
        self.pending = handle.getListState("pending", "event STRING")
        self.kept = handle.getValueState("machine", "machine STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002
        found = [tuple(row[name] for name in _COLUMNS) for row in rows]
        waiting = [one for one in found if not one[3]]
        changes = [_event(one) for one in found if one[3]]
        if waiting:
            self.pending.appendList([(states.dumps(one),) for one in waiting])
            self._wake(_EPOCH + timedelta(microseconds=min(one[0] for one in waiting)))
        if changes:
            yield from self._run(sorted(changes, key=lambda e: e.id), None)

    def handleExpiredTimer(
        self,
        key: Any,  # noqa: ARG002
        timerValues: "TimerValues",
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: ARG002
    ) -> Iterator[Row]:
        until = _EPOCH + timedelta(milliseconds=timerValues.getCurrentWatermarkInMs()) - self.view.limit
        waiting = [_event(states.loads(text)) for (text,) in self.pending.get()] if self.pending.exists() else []
        due = sorted({(e.time, e.stream, e.id): e for e in waiting if e.time < until}.values())
        later = [e for e in waiting if e.time >= until]
        if due:
            self.pending.put([(states.dumps(_row(e)),) for e in later]) if later else self.pending.clear()
        if later:
            self._wake(min(e.time for e in later))
        yield from self._run(due, until)

    def close(self) -> None:
        """Nothing is held beyond the state store."""

    def _run(self, found: list[Event], until: datetime | None) -> Iterator[Row]:
        kept = self.kept.get()
        held = states.loads(kept[0]) if kept else NEW | {"seen": {}}
        state, rows = advance(self.view, held["state"], _unseen(held["seen"], found), until)
        held |= {"state": state, "revision": held["revision"] + len(rows)}
        if state is None and not held["seen"] and not self.view.upserts:
            self.kept.clear()
        else:
            self.kept.update((states.dumps(held),))
        timer = self.view.timer(state) if state is not None else None
        if timer:
            self._wake(timer)
        first = held["revision"] - len(rows) + 1
        for revision, row in enumerate(rows, first):
            yield Row(**{"at": row["at"], **{n: row.get(n) for n in self.view.columns}, "_revision": revision})

    def _wake(self, instant: datetime) -> None:
        """Ask to be called once nothing on time can precede what comes after the instant."""
        due = (instant + self.view.limit - _EPOCH) // timedelta(milliseconds=1)
        self.handle.registerTimer(due + 1)


def _unseen(seen: dict[str, str], found: list[Event]) -> Iterator[Event]:
    for one in found:
        if one.is_change:
            order, _, row = one.id.partition("|")
            if order <= seen.get(f"{one.stream}|{row}", ""):
                continue
            seen[f"{one.stream}|{row}"] = order
        yield one


def _event(columns: "tuple[Any, ...] | list[Any]") -> Event:
    return event(dict(zip(_COLUMNS, columns, strict=True)))


def _row(one: Event) -> tuple[Any, ...]:
    micros = (one.time - _EPOCH) // timedelta(microseconds=1)
    return (micros, one.id, one.stream, one.is_change, states.dumps(one.data))
