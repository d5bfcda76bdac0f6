"""Event-time progress: the Kafka timestamp that every partition has passed at a given position.

Bronze's ledger says which time each partition had reached at which offset, so no row has to be read.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from lockstep import ledger


def reached(entries: Iterable[ledger.Entry], position: Mapping[int, int]) -> datetime | None:
    """The time (UTC) that every partition has passed before ``position``; None while that is not known of one.

    An entry counts only if the position covers all of it, so the time may be too early, and is never too late.

    Args:
        entries: bronze's ledger, newest first; no more of it is read than needed.
        position: per partition, the next offset that the layer has not taken.
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
