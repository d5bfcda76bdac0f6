"""How far a position has come in the log's own time.

The ledger of bronze says which time each partition had reached at which offset, so a position becomes a time without
reading a row.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from lockstep import ledger


def reached(entries: Iterable[ledger.Entry], position: Mapping[int, int]) -> datetime | None:
    """The time (UTC) that every partition's log had passed below ``position``, or None while one has nothing to show.

    Conservative: an entry counts only when the position covers all of it.

    Args:
        entries: bronze's ledger, newest first; read no further than needed.
        position: per partition, the next offset that the layer has not seen.
    """
    times: dict[int, int] = {}
    for entry in entries:
        for r in entry.ranges:
            if r.partition not in times and r.partition in entry.reached and r.end <= position.get(r.partition, 0):
                times[r.partition] = entry.reached[r.partition]
        if times.keys() >= position.keys():
            break
    if not position or times.keys() < position.keys():
        return None
    return datetime.fromtimestamp(min(times.values()) / 1000, UTC)
