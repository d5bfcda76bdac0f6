"""Bronze: Kafka's records as they were, with the ledger of what was read in the same commit."""

from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.tables import bronze_of
from lockstep.failpoints import failpoint
from lockstep.ingest.consumer import read_small
from lockstep.ingest.offsets import offsets_of_existing_topics, topic_offsets
from lockstep.ingest.source import read_range
from lockstep.ledger.heads import advance, head
from lockstep.ledger.integrity import record_digest
from lockstep.ledger.ranges import gaps, plan, size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings

COLUMNS = {
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestamp_type": "INT",
    "key": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "value": "BINARY",
}
# Raw bytes may be personal data. With statistics on them, the Delta log would keep values that were erased from the rows.
PROPERTIES = ledger.RETENTION | {"delta.dataSkippingStatsColumns": "topic,partition,offset,timestamp,timestamp_type"}


def behind(settings: "Settings", contracts: "Iterable[Contract]") -> "list[Contract]":
    """The contracts whose topic exists and has more than their ledger. Asks the broker once, and never Spark."""
    contracts = list(contracts)
    offsets = offsets_of_existing_topics(settings, [c.topic for c in contracts])
    return [
        c for c in contracts if c.topic in offsets and _lags(offsets[c.topic], ledger.latest(settings, bronze_of(c)))
    ]


def _lags(topic: "TopicOffsets", newest: ledger.Entry | None) -> bool:
    taken = {r.partition: r for r in newest.ranges} if newest else {}
    return any(
        p not in taken or (taken[p].end, taken[p].topic_id) != (last, topic.topic_id)
        for p, (first, last) in topic.partitions.items()
        if last > first or p in taken
    )


def accept_gap(
    spark: "SparkSession", settings: "Settings", contract: "Contract", by: str, reason: str
) -> ledger.Entry | None:
    """Accept that offsets are gone from the log before they were read: an entry of the ledger without rows.

    Returns:
        The entry, or None when nothing is missing.

    Raises:
        TopicRecreated, DataLoss: what is missing is not the beginning of the log, so nobody can accept it.
    """
    table = bronze_of(contract)
    with lease(settings, table, by) as control:
        newest = ledger.latest(settings, table)
        ledger.check_tip(table, newest, head(control, table))
        skipped = gaps(newest.ranges if newest else (), topic_offsets(settings, contract.topic))
        if size(skipped) == 0:
            return None
        record = ledger.record("ingest", newest, f"signed by {by}", skipped, signed={"by": by, "reason": reason})
        no_rows = lake.read(spark, settings, table).where("false")
        lake.append(no_rows, settings, table, ledger.txn(table, record), record)
        written = ledger.committed(settings, table, record)
        advance(control, table, written.version, written.seq, list(written.ranges))
        return written


def ingest(spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str) -> ledger.Entry | None:
    """Ingest what the topic has after the ledger's end, at most ``max_offsets_per_run`` offsets, in one commit.

    A few offsets are read and committed without Spark, with the same result.

    Returns:
        The new entry, or None when there was nothing new.

    Raises:
        DataLoss, TopicRecreated, LedgerBroken: nothing was read or written.
        Overtaken: another run has committed first.
    """
    table = bronze_of(contract)
    with lease(settings, table, run_id) as control:
        newest = ledger.latest(settings, table)
        ledger.check_tip(table, newest, head(control, table))
        ranges = plan(
            newest.ranges if newest else (), topic_offsets(settings, contract.topic), settings.max_offsets_per_run
        )
        if size(ranges) == 0:
            if newest:
                advance(control, table, newest.version, newest.seq, ranges)
            return None
        if newest is None:
            lake.create(spark, settings, table, COLUMNS, properties=PROPERTIES)
        failpoint("range-planned")
        small = lake.is_small(size(ranges))
        rows = read_small(settings, ranges) if small else read_range(spark, settings, ranges)
        record = ledger.record("ingest", newest, run_id, ranges)
        lake.append(rows, settings, table, ledger.txn(table, record), record)
        failpoint("bronze-committed")
        written = ledger.committed(settings, table, record)
        record_digest(control, settings, table, written.version)
        advance(control, table, written.version, written.seq, list(written.ranges))
        return written
