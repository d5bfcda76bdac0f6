"""Compare a captured table with its source database, row by row, as of one snapshot of the database."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep import lake, ledger
from lockstep.contracts.captured import database_of
from lockstep.definition.columns import ddl
from lockstep.definition.tables import Tables
from lockstep.ingest.offsets import topic_offsets
from lockstep.reconcile.source_query import BEYOND
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
Key = tuple[Any, ...]


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
        with snapshot(settings, contract, schema) as source:
            found = _compare(spark, settings, contract, source)
            if found.counts:
                _await(settings, contract, source, seconds)
                found = _compare(spark, settings, contract, source)
        if not found.counts:
            break
    return found


def _await(settings: "Settings", contract: "Contract", source: Snapshot, seconds: int) -> None:
    """Wait until silver has all changes that the snapshot sees."""
    await_capture(settings, database_of(settings, contract), source.lsn, seconds)
    attempts = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(_WAIT_SECONDS), retry=retry_if_not_result(bool))
    ends = topic_offsets(settings, contract.topic).stable_ends
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
    """Compare chunk by chunk, in the order of the key, so that no more than a chunk is in memory."""
    ours = _as_of(spark, settings, contract, source).orderBy(*contract.unique_id).persist()
    try:
        rows, after = 0, None
        counts: Counter[Kind] = Counter()
        examples: list[Difference] = []
        for chunk in source.chunks():
            part = ours.where(_is_within(contract, after, chunk.until))
            of_chunk, first = _differences(spark, contract, chunk.rows, part, EXAMPLES - len(examples))
            rows, after = rows + chunk.rows.num_rows, chunk.until
            counts.update(of_chunk)
            examples += first
    finally:
        ours.unpersist()
    return Verified(contract.name, rows, source.lsn, dict(counts), tuple(examples))


def _is_within(contract: "Contract", after: Key | None, until: Key | None) -> "Column":
    """Whether a row's key comes after one key, and not after another; None: there is no such limit."""
    names = contract.unique_id
    key = F.struct(*names)

    def limit(values: Key) -> "Column":
        return F.struct(*(F.lit(v).cast(contract.columns[n]).alias(n) for n, v in zip(names, values, strict=True)))

    within = F.lit(True)
    if after is not None:
        within = within & (key > limit(after))
    return within & (key <= limit(until)) if until is not None else within


def _differences(
    spark: "SparkSession", contract: "Contract", chunk: pa.Table, part: "DataFrame", most: int
) -> tuple[dict[Kind, int], list[Difference]]:
    """How many rows differ, by kind, and the first of them, at most so many."""
    names, key = [*contract.columns], contract.unique_id
    theirs = to_dataframe(spark, chunk).select(*key, BEYOND, F.struct(*names).alias("theirs"))
    ours = part.select(*key, F.struct(*names).alias("ours"))
    is_beyond = F.coalesce(F.size(BEYOND) > 0, F.lit(False))
    both = theirs.join(ours, [*key], "full_outer").where(~F.col("theirs").eqNullSafe(F.col("ours")) | is_beyond)
    kind = (
        F.when(F.col("ours").isNull(), Kind.MISSING.value)
        .when(F.col("theirs").isNull(), Kind.EXTRA.value)
        .otherwise(Kind.CHANGED.value)
    )
    differ = F.filter(F.array(*(_differs(name) for name in names)), lambda name: name.isNotNull())
    text = F.array(*(F.col(name).cast("string") for name in key))
    found = both.select(*key, text.alias("_key"), kind.alias("_kind"), differ.alias("_columns")).persist()
    try:
        counts = {Kind(row["_kind"]): row["count"] for row in found.groupBy("_kind").count().collect()}
        rows = found.orderBy(*key).limit(most).collect() if counts and most else []
    finally:
        found.unpersist()
    return counts, [
        Difference(
            tuple(row["_key"]), Kind(row["_kind"]), tuple(row["_columns"]) if row["_kind"] == Kind.CHANGED else ()
        )
        for row in rows
    ]


def _differs(name: str) -> "Column":
    equal = F.col(f"theirs.{name}").eqNullSafe(F.col(f"ours.{name}"))
    return F.when(~equal | F.array_contains(BEYOND, name), F.lit(name))


def _as_of(spark: "SparkSession", settings: "Settings", contract: "Contract", source: Snapshot) -> "DataFrame":
    """Silver's rows that exist, by the changes that the snapshot of the source sees."""
    tables = Tables.of(contract)
    # A topic without records has silver, and no bronze.
    if not all(lake.exists(settings, table) for table in (tables.log, tables.bronze)):
        return spark.createDataFrame([], ddl(contract.columns))
    # Of one version, so that all chunks are compared with the same rows, which are kept. Bronze has all that silver has.
    log, bronze = (
        lake.read(spark, settings, table, lake.newest_version(settings, table)) for table in (tables.log, tables.bronze)
    )
    records = bronze.where(F.col("timestamp") >= F.lit(source.at - _CLOCKS))
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
