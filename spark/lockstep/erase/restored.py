"""What an older copy of the control database does not know of erasures: read from their receipts and from bronze."""

import itertools
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import ERASED
from lockstep.control import erased
from lockstep.definition.tables import bronze_of
from lockstep.erase import receipt
from lockstep.ledger import archive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lockstep.control.erased import Offsets
    from lockstep.settings import Settings

# The entries of an erasure in the archive of ledgers (SQL).
_OF_ERASURES = "record LIKE '%\"erasure\":%'"


def newest_known(settings: "Settings") -> int:
    """The highest number of an erasure that a receipt or bronze has; 0: there is none.

    A number must not be used twice: Delta takes the steps of the second erasure for those of the first, and changes nothing.
    """
    in_receipts = (kept["erasure"] for kept in receipt.every(settings))
    tables = (bronze_of(contract) for contract in CONTRACTS.values())
    in_bronze = itertools.chain.from_iterable(numbers_in(settings, t) for t in tables if lake.exists(settings, t))
    return max(itertools.chain(in_receipts, in_bronze), default=0)


def numbers_in(settings: "Settings", table: str) -> "Iterator[int]":
    """The numbers of the erasures that have changed a table: those in its log, and in the archive of its ledger."""
    commits = itertools.chain(lake.commits(settings, table), archive.read(settings, table, _OF_ERASURES))
    return (int(commit.record["erasure"]) for commit in commits if "erasure" in commit.record)


def take_over(settings: "Settings") -> int:
    """Record the erasures that have a receipt, and that the control database lacks, with the offsets; return how many.

    Bronze says which offsets: its rows are still there, and marked. From here on nobody takes them from Kafka again.
    """
    known = {one.number for one in erased.every(settings)}
    lacking = [kept for kept in receipt.every(settings) if kept["erasure"] not in known]
    if lacking:
        erased.take_over(settings, lacking, _marked(settings, lacking))
    return len(lacking)


def _marked(settings: "Settings", receipts: "Sequence[Mapping[str, Any]]") -> "dict[str, Offsets]":
    """By topic, the offsets of the rows that are marked as erased in bronze of the receipts' streams."""
    from lockstep.lake.small_commits import collect

    found: dict[str, Offsets] = {}
    for name in sorted({name for kept in receipts for name in kept["records"]} & CONTRACTS.keys()):
        table = bronze_of(CONTRACTS[name])
        if lake.exists(settings, table):
            rows = collect(settings, table, f"headers[1]['key'] = '{ERASED}'", ["partition", "offset"])
            found[CONTRACTS[name].topic] = erased.offsets_of((r["partition"], r["offset"]) for r in rows.to_pylist())
    return found
