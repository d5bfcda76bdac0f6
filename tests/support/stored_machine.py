"""A machine as a layer keeps it between its calls: as texts."""

from datetime import datetime
from typing import Any

from lockstep.definition import Event, Keyed
from lockstep.definition.machine import Machine


class StoredMachine:
    """The machine of one key of a view.

    ``size`` is that of all its texts, and ``moved`` of those that the last call read and wrote.
    """

    def __init__(self, view: Keyed) -> None:
        self._view, self._text, self._buckets = view, Machine().dump(), dict[int, str]()
        self.moved = 0

    @property
    def size(self) -> int:
        """The characters of all texts."""
        return len(self._text) + sum(map(len, self._buckets.values()))

    def process(self, *events: Event, until: datetime | None = None) -> list[dict[str, Any]]:
        """The rows that the events give in one call."""
        machine = Machine.load(self._text)
        needed = {n: self._buckets[n] for n in machine.needed(self._view, [*events]) if n in self._buckets}
        rows, changed = machine.run(self._view, [*events], until, needed)
        after = machine.dump()
        self.moved = sum(map(len, (self._text, after, *needed.values(), *(text or "" for text in changed.values()))))
        self._text = after
        self._buckets = {number: text for number, text in (self._buckets | dict(changed)).items() if text}
        return rows
