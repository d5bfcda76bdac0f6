"""Whether a table is late: it has not taken what its source has had for longer than it may. Read from the logs alone."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep.ledger.entries import entries

if TYPE_CHECKING:
    from lockstep.settings import Settings


def is_late(settings: "Settings", source: str, taken: Mapping[int, int], limit: datetime) -> bool:
    """Whether a commit of the source that is older than a limit (UTC) has offsets which are not taken.

    Args:
        source: a table with a ledger.
        taken: by partition, the next offset that will be taken.
    """
    for entry in entries(settings, source):
        if all(taken.get(r.partition, 0) >= r.end for r in entry.ranges):
            return False
        if entry.committed_at < limit.timestamp() * 1000:
            return True
    return False
