"""Take the records out of a stream's tables: bronze keeps their positions, silver and quarantine nothing.

Each step may be killed and run again. The ledgers say that records were erased: their sums hold, and no position moves. The
caller holds the leases of all tables.
"""

import itertools
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.control.erased import Offsets
from lockstep.definition.tables import Tables
from lockstep.ingest.bronze import commit_without_rows
from lockstep.ingest.redaction import EMPTY
from lockstep.lake import Txn
from lockstep.ledger.integrity import record_digest
from lockstep.ledger.ranges import where_offsets
from lockstep.refine.classified import ERASED, newest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg2.extensions import connection as Connection
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.control.erased import Erasure
    from lockstep.settings import Settings

WRITER = "erase"


def redact(
    spark: "SparkSession",
    settings: "Settings",
    control: "Connection",
    contract: "Contract",
    erasure: "Erasure",
    offsets: Offsets,
) -> None:
    """Remove key, headers and value of the records in bronze. A signed entry of its ledger says who asked for it."""
    table = Tables.of(contract).bronze
    lake.update(spark, settings, table, EMPTY, where_offsets(offsets), txn(table, erasure), record(erasure))
    if is_recorded(settings, table, erasure):
        return
    last = _newest(settings, table)
    signed = ledger.signature(ledger.SignedFor.ERASURE, erasure.by, erasure.reason)
    entry = ledger.record(
        "ingest",
        last,
        run_id(erasure),
        ledger.unchanged_position(last),
        epochs=last.epochs,
        signed=signed,
        erasure=erasure.number,
    )
    commit_without_rows(control, settings, table, entry)


def remove(
    spark: "SparkSession",
    settings: "Settings",
    control: "Connection",
    contract: "Contract",
    erasure: "Erasure",
    offsets: Offsets,
    counts: "Mapping[str, int]",
) -> None:
    """Remove the records' rows from silver's log, from the current rows, and from quarantine.

    Args:
        counts: of the records that silver had read, by outcome.
    """
    tables = Tables.of(contract)
    where = where_offsets(offsets, "_partition", "_offset")
    there = [t for t in (tables.quarantine, tables.log, tables.current) if t and lake.exists(settings, t)]
    for table in there:
        if table != tables.current:
            lake.delete(spark, settings, table, where, txn(table, erasure), record(erasure))
    if tables.current in there:
        log = lake.read(spark, settings, tables.log)
        rows = newest(log, contract.unique_id).select(*lake.read(spark, settings, tables.current).columns)
        lake.replace(rows, settings, tables.current, "true", txn(tables.current, erasure), record(erasure))
    if tables.log in there and not is_recorded(settings, tables.log, erasure):
        last = _newest(settings, tables.log)
        delta = {outcome: -count for outcome, count in counts.items()} | {ERASED: sum(counts.values())}
        entry = ledger.record(
            "refine", last, run_id(erasure), ledger.unchanged_position(last), counts=delta, erasure=erasure.number
        )
        lake.append_record(settings, tables.log, ledger.txn(tables.log, entry), entry)
        written = ledger.committed(settings, tables.log, entry)
        record_digest(control, settings, tables.log, written.version)
    for table in there:
        if table != tables.log and ledger.latest(settings, table) and not is_recorded(settings, table, erasure):
            _repeat_position(settings, table, erasure, _newest(settings, tables.log).seq)


def _repeat_position(settings: "Settings", table: str, erasure: "Erasure", seq: int) -> None:
    """Have the newest entry of a table that follows silver's log after the commit that removed rows: older ones are trimmed.

    Args:
        seq: of silver's log: a higher one would pin the next run of refine to the ranges of this entry.
    """
    last = _newest(settings, table)
    entry = ledger.record(
        "refine", last, run_id(erasure), ledger.unchanged_position(last), counts={}, erasure=erasure.number
    )
    lake.append_record(settings, table, Txn(f"{WRITER}-position:{table}:{erasure.number}", 1), entry | {"seq": seq})


def is_recorded(settings: "Settings", table: str, erasure: "Erasure") -> bool:
    """Whether the table's ledger has an entry of this erasure."""
    since = erasure.asked_at.timestamp() * 1000 - _CLOCKS
    recent = itertools.takewhile(lambda commit: commit.timestamp >= since, lake.commits(settings, table))
    return any(c.record.get("erasure") == erasure.number and "ranges" in c.record for c in recent)


# Milliseconds by which the clock of PostgreSQL may be ahead of that of a writer.
_CLOCKS = 60_000


def txn(table: str, erasure: "Erasure") -> Txn:
    """The transaction id of an erasure's change of a table's rows."""
    return Txn(f"{WRITER}:{table}:{erasure.number}", 1)


def record(erasure: "Erasure") -> dict[str, Any]:
    """The record of a commit that changes rows, and is no entry of a ledger."""
    return {"writer": WRITER, "erasure": erasure.number}


def run_id(erasure: "Erasure") -> str:
    """What commits and leases name."""
    return f"erasure-{erasure.number}"


def _newest(settings: "Settings", table: str) -> ledger.Entry:
    found = ledger.latest(settings, table)
    assert found, table  # noqa: S101
    return found
