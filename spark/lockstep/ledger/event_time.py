"""Event-time progress: the watermark that every partition of a stream has passed at a given position.

Silver's ledger says which Kafka timestamp each partition had reached at which offset, so no row has to be read.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import ledger

if TYPE_CHECKING:
    from lockstep.contracts import Contract


def newest_at(entries: Iterable[ledger.Entry], position: Mapping[int, int]) -> dict[int, int]:
    """Per partition, the newest Kafka timestamp before the position (milliseconds, UTC), where it is known.

    An entry counts only if the position covers all of it, so the timestamp may be too old, and is never too new.

    Args:
        entries: silver's ledger, newest first; no more of it is read than needed.
        position: per partition, the next offset that was not taken.
    """
    newest: dict[int, int] = {}
    # The newest entry has every partition of the ledger.
    unknown: set[int] | None = None
    for entry in entries:
        unknown = position.keys() & {r.partition for r in entry.ranges} if unknown is None else unknown
        # An entry has the times of all before it: a partition without one had no record until then.
        covered = {r.partition for r in entry.ranges if r.partition in unknown and r.end <= position[r.partition]}
        newest |= {partition: entry.newest[partition] for partition in covered & entry.newest.keys()}
        unknown -= covered
        if not unknown:
            break
    return newest


def watermark(contract: "Contract", newest: Mapping[int, int], partitions: Iterable[int]) -> datetime | None:
    """The time (UTC) that all these partitions have passed; None while one of them has had no record, or there are none.

    Args:
        newest: per partition, its newest Kafka timestamp (milliseconds, UTC).
    """
    times = [newest.get(partition) for partition in partitions]
    known = [time for time in times if time is not None]
    if not times or len(known) < len(times):
        return None
    return datetime.fromtimestamp(min(known) / 1000, UTC) - contract.max_out_of_orderness
