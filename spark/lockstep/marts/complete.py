"""Whether a day is complete: silver has every row that was written before its end."""

from datetime import datetime
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.definition.tables import Tables
from lockstep.ingest import bronze
from lockstep.ingest.offsets import topic_offsets
from lockstep.ledger.event_time import watermark
from lockstep.ledger.ranges import ends
from lockstep.refine import silver

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def behind(settings: "Settings", contracts: "Iterable[Contract]", instant: datetime) -> list[str]:
    """The streams of which silver may still get rows that were written before ``instant`` (UTC).

    A stream that nobody writes to any more is not among them: silver has all that Kafka has.
    """
    not_passed = [contract for contract in contracts if not _has_passed(settings, contract, instant)]
    in_kafka = {contract.name for contract in bronze.behind(settings, not_passed)} if not_passed else set()
    return [c.name for c in not_passed if c.name in in_kafka or silver.behind(settings, c)]


def _has_passed(settings: "Settings", contract: "Contract", instant: datetime) -> bool:
    """Whether the log has passed the instant, as far as silver has taken it."""
    entry = ledger.latest(settings, Tables.of(contract).log)
    if entry is None:
        return False
    if contract.kind == "changes":
        # All partitions have parts of one log, the database's: those that have not passed need no more than to be read.
        passed_by = {p for p, newest in entry.newest.items() if newest >= instant.timestamp() * 1000}
        return bool(passed_by) and not _unread(settings, contract.topic, ends(entry.ranges)).difference(passed_by)
    passed = watermark(contract, entry.newest, ends(entry.ranges))
    return passed is not None and passed >= instant


def _unread(settings: "Settings", topic: str, read: "Mapping[int, int]") -> set[int]:
    """The partitions that have more than what was read of them."""
    return {p for p, (_, end) in topic_offsets(settings, topic).partitions.items() if end > read.get(p, 0)}
