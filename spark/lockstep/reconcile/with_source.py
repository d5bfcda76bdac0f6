"""Compare a captured table with its source database, row by row, as of one snapshot of the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep import lake, ledger
from lockstep.definition.columns import ddl
from lockstep.definition.tables import Tables
from lockstep.ingest.offsets import topic_offsets
from lockstep.reconcile.source_rows import XIDS, NotCaptured, Snapshot, await_capture, snapshot
from lockstep.refine.classified import newest
from lockstep.session import to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# A record of a transaction that the snapshot does not see arrived after it; the clocks of the two servers may differ by so much.
_CLOCKS = timedelta(minutes=5)
# Differences that are named. All are counted.
EXAMPLES = 5
_WAIT_SECONDS = 2
_ROUNDS = 2


class Kind(StrEnum):
    """How a row differs."""

    MISSING = "missing in silver"
    EXTRA = "only in silver"
    CHANGED = "another one"


@dataclass(frozen=True)
class Difference:
    """A row that differs.

    Args:
        key: its values of the contract's ``unique_id``.
        columns: those that differ, where both have the row.
    """

    key: tuple[str, ...]
    kind: Kind
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    """What came out.

    Args:
        rows: of the source.
        lsn: the LSN of the source at which the two were compared.
        counts: how many rows differ, by kind.
        examples: the first :data:`EXAMPLES` of them.
    """

    stream: str
    rows: int
    lsn: int
    counts: Mapping[Kind, int]
    examples: tuple[Difference, ...]


def verify(spark: "SparkSession", settings: "Settings", contract: "Contract", seconds: int) -> Verified:
    """Compare ``silver.<table>`` with the table in the source database as it is now.

    If they differ, wait until silver has all that was committed at the moment of the comparison, and compare again; and if they
    still do, once more from the beginning. A snapshot that Debezium takes meanwhile hides what was before it, and the deletes of
    what it does not have come a run of refine later.

    Args:
        seconds: how long to wait, each time.

    Raises:
        NotCaptured: silver does not have it after that time.
        SourceUnreadable: the database does not give the table's rows.
    """
    schema = to_arrow_schema(spark.createDataFrame([], ddl(contract.columns)).schema)
    for _ in range(_ROUNDS):
        source = snapshot(settings, contract, schema)
        found = _compare(spark, settings, contract, source)
        if found.counts:
            _await(settings, contract, source, seconds)
            found = _compare(spark, settings, contract, source)
        if not found.counts:
            break
    return found


def _await(settings: "Settings", contract: "Contract", source: Snapshot, seconds: int) -> None:
    """Wait until silver has all changes that the snapshot sees."""
    await_capture(settings, source.lsn, seconds)
    attempts = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(_WAIT_SECONDS), retry=retry_if_not_result(bool))
    ends = {p: last for p, (_, last) in topic_offsets(settings, contract.topic).partitions.items()}
    try:
        attempts(lambda: _has(settings, contract, ends))
    except RetryError:
        raise NotCaptured(
            f"{contract.topic}: {Tables.of(contract).log} has not read the topic up to {ends} after {seconds} s. See `lockstep "
            "status`: ingest and refine must run."
        ) from None


def _has(settings: "Settings", contract: "Contract", ends: Mapping[int, int]) -> bool:
    entry = ledger.latest(settings, Tables.of(contract).log)
    taken = {r.partition: r.end for r in entry.ranges} if entry else {}
    return all(taken.get(partition, 0) >= end for partition, end in ends.items())


def _compare(spark: "SparkSession", settings: "Settings", contract: "Contract", source: Snapshot) -> Verified:
    names = [*contract.columns]
    theirs = to_dataframe(spark, source.rows).select(*contract.unique_id, F.struct(*names).alias("theirs"))
    ours = _as_of(spark, settings, contract, source).select(*contract.unique_id, F.struct(*names).alias("ours"))
    both = theirs.join(ours, [*contract.unique_id], "full_outer").where(~F.col("theirs").eqNullSafe(F.col("ours")))
    kind = (
        F.when(F.col("ours").isNull(), Kind.MISSING.value)
        .when(F.col("theirs").isNull(), Kind.EXTRA.value)
        .otherwise(Kind.CHANGED.value)
    )
    differ = F.filter(F.array(*(_differs(name) for name in names)), lambda name: name.isNotNull())
    key = F.array(*(F.col(name).cast("string") for name in contract.unique_id))
    found = both.select(key.alias("key"), kind.alias("kind"), differ.alias("columns")).persist()
    try:
        counts = {Kind(row["kind"]): row["count"] for row in found.groupBy("kind").count().collect()}
        rows = found.orderBy("key").limit(EXAMPLES).collect() if counts else []
    finally:
        found.unpersist()
    examples = tuple(
        Difference(tuple(row["key"]), Kind(row["kind"]), tuple(row["columns"]) if row["kind"] == Kind.CHANGED else ())
        for row in rows
    )
    return Verified(contract.name, source.rows.num_rows, source.lsn, counts, examples)


def _differs(name: str) -> "Column":
    return F.when(~F.col(f"theirs.{name}").eqNullSafe(F.col(f"ours.{name}")), F.lit(name))


def _as_of(spark: "SparkSession", settings: "Settings", contract: "Contract", source: Snapshot) -> "DataFrame":
    """Silver's rows that exist, by the changes that the snapshot of the source sees."""
    tables = Tables.of(contract)
    # A topic without records has silver, and no bronze.
    if not all(lake.exists(settings, table) for table in (tables.log, tables.bronze)):
        return spark.createDataFrame([], ddl(contract.columns))
    log = lake.read(spark, settings, tables.log)
    since = F.lit(source.at - _CLOCKS)
    records = lake.read(spark, settings, tables.bronze).where(F.col("timestamp") >= since)
    xid = F.get_json_object(F.col("value").cast("string"), "$.source.txId").cast("bigint")
    recent = records.select(F.col("partition").alias("_partition"), F.col("offset").alias("_offset"), xid.alias("_xid"))
    told = log.join(F.broadcast(recent), ["_partition", "_offset"], "left")
    changes = told.where(~F.coalesce(_unseen(source), F.lit(False)))
    return newest(changes, contract.unique_id).where(~F.col("_deleted"))


def _unseen(source: Snapshot) -> "Column":
    """Whether a change is of a transaction that the snapshot does not see. Rows of a snapshot of Debezium go by their LSN."""
    xid = F.col("_xid")
    had_not_begun = F.pmod(xid - source.begins, F.lit(XIDS)) < XIDS // 2
    streamed = had_not_begun | xid.isin([*source.running])
    return F.when(F.col("_op") == "r", F.col("_lsn") > source.lsn).otherwise(streamed)
