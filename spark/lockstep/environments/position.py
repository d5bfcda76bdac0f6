"""Up to where an environment takes production's records: to where production's gold is, so that the two can be compared."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.definition.tables import gold_of

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.definition import View
    from lockstep.ledger import Entry
    from lockstep.settings import Settings

# A view of production that is further behind the others stands still: the sample does not wait for it.
_STANDS_STILL = timedelta(hours=1)


def ends(settings: "Settings", contract: "Contract", views: "Iterable[View]") -> dict[int, int]:
    """Per partition, the offset that all these views have passed in production's gold; empty: none of them has any."""
    production = settings.production
    newest = [ledger.latest(production, gold_of(view)) for view in views if contract.name in view.streams]
    return common([entry for entry in newest if entry], contract.topic)


def common(entries: "list[Entry]", topic: str) -> dict[int, int]:
    """Per partition of a topic, the offset that all these entries have passed, without those that stand still. Pure."""
    entries = [entry for entry in entries if any(r.topic == topic for r in entry.ranges)]
    last = max((entry.committed_at for entry in entries), default=0)
    current = [e for e in entries if e.committed_at >= last - _STANDS_STILL // timedelta(milliseconds=1)]
    found: dict[int, int] = {}
    for r in (r for entry in current for r in entry.ranges if r.topic == topic):
        found[r.partition] = min(r.end, found.get(r.partition, r.end))
    return found


def at_same_position(settings: "Settings", view: "View", here: "Entry") -> "Entry | None":
    """The newest entry of production's gold that has taken the same offsets as an entry of the environment's; None: none has."""
    wanted = {(r.topic, r.partition): r.end for r in here.ranges}
    for entry in ledger.entries(settings.production, gold_of(view)):
        if {(r.topic, r.partition): r.end for r in entry.ranges} == wanted:
            return entry
    return None
