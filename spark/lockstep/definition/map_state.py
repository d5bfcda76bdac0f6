"""A dict in a view's state, of which an event reads and writes a few entries: Flink's MapState. Pure.

Both layers keep its entries apart from the rest of the state, in *buckets* by a hash of their keys; a bucket is one JSON text.
Their number is doubled when they have more than :data:`FULL` entries on average, as in a hash table. So what an event costs does
not depend on how many entries there are.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep.definition import states

if TYPE_CHECKING:
    from lockstep.definition.keyed import Event

# To read and write a text of so many rows costs about as much as the calls of the state store that bring it.
FULL = 16
Entries = dict[str, Any]
# The texts of buckets by their numbers. To write None removes a bucket.
Texts = Mapping[int, str | None]


def _never(_entry: Any, _event: "Event") -> bool:
    return False


@dataclass(frozen=True)
class MapState:
    """A dict with texts as its keys. While ``process`` runs, the state has it under its name.

    Args:
        name: of the dict in the state.
        touched: the keys of the entries that ``process`` reads or writes for an event; None: all of them. It sees no others.
        is_over: whether an entry does not count any more after an event, so that it may be dropped (Flink's time to live).
    """

    name: str
    touched: "Callable[[Event], Collection[str] | None]"
    is_over: "Callable[[Any, Event], bool]" = _never


class Opened:
    """The entries of a machine's map state that it needs while it processes some events.

    Args:
        size: how many entries the machine has in all.
        buckets: in how many buckets these are.
        stored: the texts of the buckets that :func:`needed` names, as far as they are not empty.
    """

    def __init__(
        self, of: MapState, events: "Collection[Event]", size: int, buckets: int, stored: Mapping[int, str]
    ) -> None:
        self._of, self._last, self._keys = of, max(events, default=None), _touched(of, events)
        self._before = {number: stored.get(number) for number in needed(of, events, size, buckets)}
        texts = filter(None, self._before.values())
        found = {key: entry for text in texts for key, entry in states.loads(text).items()}
        self.size, self.buckets, self._found = size, buckets, len(found)
        self.entries = found if self._keys is None else {key: found[key] for key in self._keys & found.keys()}
        self._others = {key: entry for key, entry in found.items() if key not in self.entries}

    def forget(self) -> None:
        """Have none of the entries that there were: the machine has ended, and may begin again."""
        self._others, self._found = {}, self.size
        # No bucket has this text, so all are written or removed.
        self._before = dict.fromkeys(range(self.buckets), "")

    def close(self, entries: Entries) -> Texts:
        """The buckets that have changed, now that these are the entries that the view sees.

        Raises:
            KeyError: the view wrote an entry that its ``touched`` does not name.
        """
        if self._keys is not None and (strays := entries.keys() - self._keys):
            raise KeyError(f"process wrote {self._of.name}[{min(strays)!r}], which touched does not name")
        after = {key: entry for key, entry in (self._others | entries).items() if not self._is_over(entry)}
        self.size += len(after) - self._found
        if len(self._before) == self.buckets:
            while self.size > FULL * self.buckets:
                self.buckets *= 2
        of_bucket: dict[int, Entries] = {number: {} for number in self._before}
        for key in sorted(after):
            of_bucket.setdefault(_bucket(key, self.buckets), {})[key] = after[key]
        texts = {number: states.dumps(found) if found else None for number, found in of_bucket.items()}
        return {number: text for number, text in texts.items() if text != self._before.get(number)}

    def _is_over(self, entry: Any) -> bool:
        return self._last is not None and self._of.is_over(entry, self._last)


def needed(of: MapState, events: "Collection[Event]", size: int, buckets: int) -> Collection[int]:
    """The buckets that a machine needs for some events: all of them also when they are full, so that there will be more."""
    keys = _touched(of, events)
    if keys is None or size > FULL * buckets:
        return range(buckets)
    return {_bucket(key, buckets) for key in keys}


def _touched(of: MapState, events: "Iterable[Event]") -> set[str] | None:
    """The keys that the events touch; None: all."""
    found: set[str] = set()
    for event in events:
        keys = of.touched(event)
        if keys is None:
            return None
        found.update(keys)
    return found


def _bucket(key: str, buckets: int) -> int:
    """The same in every process, which Python's own hash is not."""
    return zlib.crc32(key.encode()) % buckets
