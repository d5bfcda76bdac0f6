"""Whether a day is complete: silver has every row that was written before its end."""

from datetime import datetime
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.definition.tables import Tables
from lockstep.ingest import bronze
from lockstep.ledger.event_time import watermark
from lockstep.ledger.ranges import ends
from lockstep.refine import silver

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        # All partitions have parts of one log, the database's.
        return max(entry.newest.values(), default=0) >= instant.timestamp() * 1000
    passed = watermark(contract, entry.newest, ends(entry.ranges))
    return passed is not None and passed >= instant
