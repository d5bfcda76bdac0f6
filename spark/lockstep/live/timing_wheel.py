"""What waits in a state partition for its time, in the state store.

A hierarchical timing wheel (Varghese and Lauck, 1987; Kafka has one for delayed requests): entries are kept by slots of time, a
second wide near the present and wider far from it. What a micro-batch pays depends on the slots that it touches, and not on how
much waits.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lockstep.live.state_map import StateMap

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

Entry = dict[str, Any]
# The state variable with the entries: a JSON array for each chunk.
WAITING = "waiting"
# The slot of what is due when it arrives.
OVERDUE = 0
_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000


class TimingWheel:
    """Entries that wait until they are due. All times are event time in milliseconds since the epoch (UTC).

    A micro-batch adds one chunk to each slot of its entries, and reads nothing for it. When a slot has begun, its chunks are
    read: what is due is taken out, and the rest goes into narrower slots. Spark has one timer for all of it.

    Args:
        due: when an entry is due.
    """

    def __init__(self, handle: "StatefulProcessorHandle", due: Callable[[Entry], int]) -> None:
        self._handle, self._due = handle, due
        self._chunks = StateMap(handle.getMapState(WAITING, "slot BIGINT, number INT", "entries STRING"))
        # How many chunks each slot has, and when Spark's timer comes.
        self._index = handle.getValueState("slots", "slots STRING, timer BIGINT")

    def add(self, entries: Iterable[Entry], now: int) -> None:
        """Let entries wait.

        Args:
            now: the watermark.
        """
        arrived: dict[int, list[Entry]] = defaultdict(list)
        for entry in entries:
            arrived[slot(self._due(entry), now)].append(entry)
        if not arrived:
            return
        slots, timer = self._load()
        chunks = {(start, slots.get(start, 0)): chunk for start, chunk in arrived.items()}
        self._chunks.write({key: json.dumps(chunk, separators=(",", ":")) for key, chunk in chunks.items()})
        slots |= {start: number + 1 for start, number in chunks}
        self._store(slots, timer, now)

    def take(self, now: int) -> list[Entry]:
        """Take out what is due, in any order. To be called when Spark's timer has come, and only then.

        Args:
            now: the watermark.
        """
        slots, _ = self._load()
        begun = {start: slots.pop(start) for start in list(slots) if start <= now}
        entries = [*self._removed(begun)]
        # Spark deletes the timer that has come by itself.
        self._store(slots, None, now)
        self.add((entry for entry in entries if self._due(entry) > now), now)
        return [entry for entry in entries if self._due(entry) <= now]

    def _removed(self, slots: dict[int, int]) -> Iterator[Entry]:
        keys = [(start, number) for start, chunks in slots.items() for number in range(chunks)]
        stored = self._chunks.read(keys)
        if missing := [key for key in keys if key not in stored]:
            raise LookupError(f"the state has no chunk {missing[0][1]} of the slot {missing[0][0]}")
        self._chunks.write(dict.fromkeys(keys))
        for chunk in stored.values():
            yield from json.loads(chunk)

    def _load(self) -> tuple[dict[int, int], int | None]:
        stored = self._index.get()
        if stored is None:
            return {}, None
        return {int(start): chunks for start, chunks in json.loads(stored[0]).items()}, stored[1]

    def _store(self, slots: dict[int, int], timer: int | None, now: int) -> None:
        """Write the index, and have Spark call when the next slot begins. An earlier call than needed does no harm."""
        if not slots:
            self._index.clear()
            return
        # What is due already comes in this micro-batch, the rest not before the next: Spark deletes a timer that has come
        # after the call, and so it would delete one that is set anew for the same instant.
        first = min(slots)
        wanted = first if first == OVERDUE else max(first, now + 1)
        if timer is None or wanted < timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(wanted)
            timer = wanted
        self._index.update((json.dumps(slots), timer))


def slot(due: int, now: int) -> int:
    """The beginning of the slot of what is due at an instant. Pure."""
    ahead = due - now
    if ahead <= 0:
        return OVERDUE
    width = _SECOND if ahead < _MINUTE else _MINUTE if ahead < _HOUR else _HOUR
    return due // width * width
