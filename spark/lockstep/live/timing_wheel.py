"""What waits in a state partition for its time, in the state store.

A hierarchical timing wheel (Varghese and Lauck, 1987; Kafka has one for delayed requests): entries are kept by slots of time, a
second wide near the present and wider far from it. What a micro-batch pays depends on the slots that it touches, and not on how
much waits.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lockstep.live.state_map import StateMap

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

Entry = dict[str, Any]
# By clock (see :mod:`lockstep.live.watermarks`), what it shows.
Clocks = Mapping[str, int]
# The state variable with the entries: a JSON array for each chunk.
WAITING = "waiting"
_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000


class TimingWheel:
    """Entries that wait until they are due. All times are event time in milliseconds since the epoch (UTC).

    A micro-batch adds one chunk to each slot of its entries, and reads nothing for it. When a slot has begun, its chunks are
    read: what is due is taken out, and the rest goes into narrower slots.

    Args:
        due: by which clock, and when, an entry is due.
    """

    def __init__(self, handle: "StatefulProcessorHandle", due: Callable[[Entry], tuple[str, int]]) -> None:
        self._due = due
        self._chunks = StateMap(handle.getMapState(WAITING, "clock STRING, slot BIGINT, number INT", "entries STRING"))
        # How many chunks each slot has.
        self._index = handle.getValueState("slots", "slots STRING")

    def take(self, now: Clocks) -> list[Entry]:
        """Take out what may be due, in any order: what is not must be added again.

        Args:
            now: what the clocks show. Nobody waits by any other, so all that does comes out.
        """
        slots = self._load()
        begun = [(clock, start) for clock, of in slots.items() for start in of if start <= now.get(clock, start)]
        if not begun:
            return []
        entries = [*self._removed({(clock, start): slots[clock].pop(start) for clock, start in begun})]
        self._store(slots)
        return entries

    def add(self, now: Clocks, entries: Iterable[Entry]) -> None:
        """Let entries wait, none of which is due."""
        waiting: dict[tuple[str, int], list[Entry]] = defaultdict(list)
        for entry in entries:
            clock, due = self._due(entry)
            waiting[clock, slot(due, now.get(clock, 0))].append(entry)
        if not waiting:
            return
        slots, chunks = self._load(), {}
        for (clock, start), of_slot in waiting.items():
            of_clock = slots.setdefault(clock, {})
            number = of_clock.get(start, 0)
            of_clock[start] = number + 1
            chunks[clock, start, number] = json.dumps(of_slot, separators=(",", ":"))
        self._chunks.write(chunks)
        self._store(slots)

    def _removed(self, slots: Mapping[tuple[str, int], int]) -> Iterator[Entry]:
        keys = [(clock, start, number) for (clock, start), chunks in slots.items() for number in range(chunks)]
        stored = self._chunks.read(keys)
        if missing := [key for key in keys if key not in stored]:
            clock, start, number = missing[0]
            raise LookupError(f"the state has no chunk {number} of the slot {start} of {clock}")
        self._chunks.write(dict.fromkeys(keys))
        for chunk in stored.values():
            yield from json.loads(chunk)

    def _load(self) -> dict[str, dict[int, int]]:
        stored = self._index.get()
        of_clocks = json.loads(stored[0]) if stored else {}
        return {clock: {int(start): chunks for start, chunks in of.items()} for clock, of in of_clocks.items()}

    def _store(self, slots: dict[str, dict[int, int]]) -> None:
        self._index.update((json.dumps(slots),))


def slot(due: int, now: int) -> int:
    """The beginning of the slot of what is due after ``now``. Pure."""
    ahead = due - now
    width = _SECOND if ahead < _MINUTE else _MINUTE if ahead < _HOUR else _HOUR
    return due // width * width
