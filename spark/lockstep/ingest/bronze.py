"""Bronze: Kafka's records as they were, with the ledger of what was read in the same commit."""

from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.columns import BRONZE
from lockstep.definition.tables import bronze_of
from lockstep.errors import LedgerBroken
from lockstep.failpoints import failpoint
from lockstep.ingest.consumer import read_small
from lockstep.ingest.offsets import forbidden_topics, offsets_of_existing_topics, topic_offsets
from lockstep.ingest.source import read_range
from lockstep.ledger.heads import advance, head
from lockstep.ledger.integrity import record_digest
from lockstep.ledger.losses import gaps
from lockstep.ledger.planning import plan
from lockstep.ledger.ranges import Range, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa
    from psycopg2.extensions import connection as Connection
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings

# Raw bytes may be personal data. With statistics on them, the Delta log would keep values that were erased from the rows.
PROPERTIES = ledger.RETENTION | {"delta.dataSkippingStatsColumns": "topic,partition,offset,timestamp,timestamp_type"}


def behind(settings: "Settings", contracts: "Iterable[Contract]") -> "list[Contract]":
    """The contracts whose topic exists, and is not as their ledger has left it. Asks the brokers, and never Spark.

    One whose topic the account may not see is among them, and one whose log is torn: its ingest says so, and the others go on.
    """
    newest: list[tuple[Contract, ledger.Entry | None]] = []
    torn: list[Contract] = []
    for contract in contracts:
        try:
            newest.append((contract, ledger.latest(settings, bronze_of(contract))))
        except LedgerBroken:
            torn.append(contract)
    return torn + _changed(settings, newest)


def _changed(settings: "Settings", newest: "Sequence[tuple[Contract, ledger.Entry | None]]") -> "list[Contract]":
    epochs = {contract.topic: entry.epochs for contract, entry in newest if entry}
    offsets = offsets_of_existing_topics(settings, [contract.topic for contract, _ in newest], epochs)
    forbidden = forbidden_topics(settings, (c.topic for c, _ in newest if c.topic not in offsets))
    return [
        c
        for c, entry in newest
        if c.topic in forbidden or (c.topic in offsets and _has_changed(offsets[c.topic], entry))
    ]


def _has_changed(log: "TopicOffsets", newest: ledger.Entry | None) -> bool:
    taken = {r.partition: r for r in newest.ranges} if newest else {}
    return any(
        (taken[p].end, taken[p].topic_id) != (last, log.topic_id) or log.same_to(p) < taken[p].end
        if p in taken
        else last > (0 if taken else first)
        for p, (first, last) in log.partitions.items()
    )


def accept_gap(settings: "Settings", contract: "Contract", by: str, reason: str) -> ledger.Entry | None:
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
        log = topic_offsets(settings, contract.topic, newest.epochs if newest else {})
        skipped = gaps(newest.ranges if newest else (), log)
        if size(skipped) == 0:
            return None
        signed = ledger.signature(ledger.SignedFor.GAP, by, reason)
        record = ledger.record("ingest", newest, f"signed by {by}", skipped, epochs=log.epochs, signed=signed)
        return commit_without_rows(control, settings, table, record)


def begin_at(
    spark: "SparkSession", settings: "Settings", contract: "Contract", starts: "Mapping[int, int]", run_id: str
) -> None:
    """Begin the ledger of a sample: an entry without rows, after which ``ingest`` goes on.

    Args:
        starts: per partition, the first offset of the sample.
    """
    table = bronze_of(contract)
    with lease(settings, table, run_id) as control:
        log = topic_offsets(settings, contract.topic)
        empty = [Range(log.topic, log.topic_id, p, starts[p], starts[p]) for p in sorted(starts)]
        lake.create(spark, settings, table, BRONZE, properties=PROPERTIES)
        record = ledger.record("ingest", None, run_id, empty, epochs=log.epochs)
        commit_without_rows(control, settings, table, record)


def ingest(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    run_id: str,
    until: "Mapping[int, int] | None" = None,
) -> ledger.Entry | None:
    """Ingest what the topic has after the ledger's end, at most ``max_offsets_per_run`` offsets, in one commit.

    A few offsets are read and committed without Spark, with the same result.

    Args:
        until: per partition, the offset that is not taken any more; None: all that the topic has is taken.

    Returns:
        The new entry, or None when there was nothing new.

    Raises:
        DataLoss, TopicRecreated, TopicForbidden, LedgerBroken: nothing was read or written.
        Overtaken: another run has committed first.
    """
    table = bronze_of(contract)
    with lease(settings, table, run_id) as control:
        newest = ledger.latest(settings, table)
        ledger.check_tip(table, newest, head(control, table))
        log = topic_offsets(settings, contract.topic, newest.epochs if newest else {})
        ranges = plan(newest.ranges if newest else (), log.below(until or {}), settings.max_offsets_per_run)
        if size(ranges) == 0:
            if newest:
                advance(control, table, newest.version, newest.seq, ranges, log.epochs)
            return None
        if newest is None:
            lake.create(spark, settings, table, BRONZE, properties=PROPERTIES)
        failpoint("range-planned")
        record = ledger.record("ingest", newest, run_id, ranges, epochs=log.epochs)
        lake.append(read(spark, settings, ranges), settings, table, ledger.txn(table, record), record)
        failpoint("bronze-committed")
        return confirm(control, settings, table, record)


def read(spark: "SparkSession", settings: "Settings", ranges: "list[Range]") -> "pa.Table | DataFrame":
    """The records of the ranges, in bronze's columns; without Spark if they are few."""
    small = lake.is_small(size(ranges))
    return read_small(settings, ranges) if small else read_range(spark, settings, ranges)


def commit_without_rows(
    control: "Connection", settings: "Settings", table: str, record: "Mapping[str, Any]"
) -> ledger.Entry:
    """Commit an entry that takes no rows, and confirm it.

    Raises:
        Overtaken, LedgerBroken: see :func:`lockstep.ledger.committed`.
    """
    lake.append_record(settings, table, ledger.txn(table, record), record)
    return confirm(control, settings, table, record)


def confirm(control: "Connection", settings: "Settings", table: str, record: "Mapping[str, Any]") -> ledger.Entry:
    """The entry that was committed just now; PostgreSQL knows it as the ledger's head from here on.

    Raises:
        Overtaken, LedgerBroken: see :func:`lockstep.ledger.committed`.
    """
    written = ledger.committed(settings, table, record)
    record_digest(control, settings, table, written.version)
    advance(control, table, written.version, written.seq, written.ranges, written.epochs)
    return written
