"""Take the commits of a bronze table again that a power cut has torn: what they held is still in Kafka."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.tables import bronze_of
from lockstep.errors import DataLoss
from lockstep.ingest.bronze import confirm, read
from lockstep.ingest.offsets import topic_offsets
from lockstep.ledger.heads import head
from lockstep.ledger.planning import plan
from lockstep.ledger.ranges import TopicOffsets, ends
from lockstep.ledger.torn import end_before, newest_entry, torn_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.ledger.heads import Head
    from lockstep.ledger.ranges import Range
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Repaired:
    """What was repaired.

    Args:
        put_aside: where the files of the torn commits are now.
        entries: the entries of the ledger that were made again, oldest first.
    """

    put_aside: list[str]
    entries: list[ledger.Entry]


def repair(spark: "SparkSession", settings: "Settings", contract: "Contract", by: str, reason: str) -> Repaired | None:
    """End the log before its torn commits, and take again from Kafka what the ledger had up to its head.

    The same offsets are the same records, so what other tables have taken of them stays right. The entries have the numbers of
    those that are gone; the first of them has all rows. If it fails, it may run again.

    Returns:
        What was repaired, or None if nothing is torn or missing.

    Raises:
        DataLoss: Kafka does not have these offsets any more. Nothing was written.
        LedgerBroken: not only the newest commits are gone.
    """
    table = bronze_of(contract)
    with lease(settings, table, by) as control:
        known, torn = head(control, table), torn_versions(settings, table)
        newest = newest_entry(settings, table, min(torn, default=None))
        missing = range(newest.seq if newest else 0, known.seq if known else 0)
        if known is None or not (torn or missing):
            return None
        log = topic_offsets(settings, contract.topic, known.epochs)
        ranges = _lost(table, newest, known, log) if missing else []
        put_aside = end_before(control, settings, table, torn)
        entries = []
        for _ in missing:
            signed = ledger.signature(ledger.SignedFor.REPAIR, by, reason)
            record = ledger.record("ingest", newest, f"signed by {by}", ranges, epochs=log.epochs, signed=signed)
            lake.append(read(spark, settings, ranges), settings, table, ledger.txn(table, record), record)
            newest = confirm(control, settings, table, record)
            ranges = ledger.unchanged_position(newest)
            entries.append(newest)
        return Repaired(put_aside, entries)


def _lost(table: str, newest: ledger.Entry | None, known: "Head", log: "TopicOffsets") -> "list[Range]":
    """The offsets from the newest entry that is whole to the head."""
    starts = ends(newest.ranges) if newest else {}
    for p, end in sorted(known.ends.items()):
        first, have = (log.partitions[p][0], log.same_to(p)) if p in log.partitions else (0, 0)
        start = starts.get(p, 0 if newest else first)
        if start < end and (start < first or have < end):
            raise DataLoss(
                f"{table}: the commits that are gone had offsets [{start}, {end}) of {log.topic}-{p}, and of them the log only "
                f"has [{max(first, start)}, {min(have, end)}). Restore the table's _delta_log from a backup. Nothing was written."
            )
    bounds = {p: (log.partitions[p][0], end) for p, end in known.ends.items() if p in log.partitions}
    return plan(newest.ranges if newest else (), TopicOffsets(log.topic, log.topic_id, bounds), sys.maxsize)
