"""The ledger: which offsets each commit of a table took, and the proof that none is missing. The idea of the project."""

from lockstep.ledger.chain import check_tip, problems
from lockstep.ledger.entries import (
    HOUSEKEEPING,
    MOST_UNKNOWN,
    RETENTION,
    Entry,
    SignedFor,
    add,
    by_this_code,
    committed,
    entries,
    entry,
    latest,
    most_frequent,
    only_grew,
    record,
    signature,
    txn,
    unchanged_position,
    untouched,
)
from lockstep.ledger.history import origin, pending

__all__ = [
    "HOUSEKEEPING",
    "MOST_UNKNOWN",
    "RETENTION",
    "Entry",
    "SignedFor",
    "add",
    "by_this_code",
    "check_tip",
    "committed",
    "entries",
    "entry",
    "latest",
    "most_frequent",
    "only_grew",
    "origin",
    "pending",
    "problems",
    "record",
    "signature",
    "txn",
    "unchanged_position",
    "untouched",
]
