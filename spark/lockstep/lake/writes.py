"""Rows of the lake's tables: how they are read, and the only code that writes them.

Rows of Spark are written by Spark. Small results are collected, and Arrow rows are committed without Spark: the same commit, for
a tenth of the price. Either way the writer holds the table's lease.

Every write has a transaction id ``writer:table:generation`` with a rising number: a write that runs twice changes nothing. Its
JSON record is in the commit's ``userMetadata``: rows and record are committed together, or not at all.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep import dictionary
from lockstep.definition.column_changes import column_changes
from lockstep.definition.columns import Columns
from lockstep.lake.paths import path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


# The writer in the record of a commit that only widens types.
WIDEN = "widen"
# So few rows are some ten megabytes in memory. What Spark reads, checks or commits in a second or more, for one row as for these,
# takes some tens of milliseconds without it. And Spark takes 7 CPU seconds to refine 20,000 changes, and 1 without its joins.
SMALL_ROWS = 50_000


def is_small(rows: int) -> bool:
    """Whether the rows are so few that they are worked on without Spark."""
    return rows <= SMALL_ROWS


@dataclass(frozen=True)
class Txn:
    """The identity of one write: Delta skips a second commit of the same ``app`` with the same or a lower ``version``."""

    app: str
    version: int


def read(spark: "SparkSession", settings: "Settings", table: str, version: int | None = None) -> "DataFrame":
    """The table's rows, now or as of a version."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path(settings, table))


def read_as_now(spark: "SparkSession", settings: "Settings", table: str, version: int) -> "DataFrame":
    """The table's rows as of a version, with the columns and the types that the table has now: they can be put back into it."""
    from pyspark.sql import functions as F

    rows = read(spark, settings, table, version)
    there, now = {*rows.columns}, read(spark, settings, table).schema
    columns = ((F.col(f.name) if f.name in there else F.lit(None)).cast(f.dataType).alias(f.name) for f in now)
    return rows.select(*columns)


def schema(settings: "Settings", table: str) -> pa.Schema:
    """The columns of the table, for Arrow rows."""
    from lockstep.lake.small_commits import SmallCommits

    return SmallCommits(settings, table).schema


def types(settings: "Settings", table: str, version: int | None = None) -> dict[str, str]:
    """The types of the table's columns, as Delta names them; of a nested one, the name of its kind. Needs no Spark.

    Args:
        version: of the table; None: the newest.
    """
    from lockstep.lake.small_commits import types

    return types(settings, table, version)


def has_columns(settings: "Settings", table: str, columns: Columns) -> bool:
    """Whether the table has all of these columns, and none with a narrower type. Needs no Spark."""
    changes = column_changes(types(settings, table), columns)
    return not changes.new and not changes.wider


def has_texts(settings: "Settings", table: str) -> bool:
    """Whether the comments of the table say what the dictionary says about it. Needs no Spark."""
    from lockstep.lake.small_commits import SmallCommits

    said = dictionary.texts(table)
    return said is None or SmallCommits(settings, table).texts == said


def last_transaction(settings: "Settings", table: str, app: str) -> int:
    """The number of the last commit of a transaction id's ``app``; 0: the table has none."""
    from lockstep.lake.small_commits import SmallCommits

    return SmallCommits(settings, table).last_transaction(app)


@singledispatch
def append(rows: Any, settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Append the rows (of Spark, or Arrow) and the record in one commit."""
    writer(rows, txn, record).mode("append").save(path(settings, table))


@append.register(pa.Table)
def _(rows: pa.Table, settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    # Imported here: it loads delta-rs, and most commands of the CLI write nothing.
    from lockstep.lake.small_commits import SmallCommits

    SmallCommits(settings, table).append(rows, txn, record)


def append_record(settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Commit the record alone."""
    from lockstep.lake.small_commits import SmallCommits

    opened = SmallCommits(settings, table)
    opened.append(opened.schema.empty_table(), txn, record)


@singledispatch
def replace(rows: Any, settings: "Settings", table: str, where: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Replace the rows that match ``where`` (SQL that both engines know) by these (of Spark, or Arrow), in one commit.

    Every one of them must match it too.
    """
    writer(rows, txn, record).mode("overwrite").option("replaceWhere", where).save(path(settings, table))


@replace.register(pa.Table)
def _(rows: pa.Table, settings: "Settings", table: str, where: str, txn: Txn, record: Mapping[str, Any]) -> None:
    from lockstep.lake.small_commits import SmallCommits

    SmallCommits(settings, table).replace(rows, where, txn, record)


def overwrite(df: "DataFrame", settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Replace all rows of the table, and its columns, in one commit."""
    writer(df, txn, record).mode("overwrite").option("overwriteSchema", "true").save(path(settings, table))


def widen(spark: "SparkSession", settings: "Settings", table: str, kinds: Columns) -> None:
    """Rewrite the table with wider types for some of its columns, in one commit. Its rows, properties and partitions stay.

    Delta's type widening would rewrite nothing, but delta-rs neither reads nor writes tables that have it.
    """
    from lockstep.lake.small_commits import SmallCommits

    opened = SmallCommits(settings, table)
    rows = read(spark, settings, table, opened.version)
    wide = rows.withColumns({name: rows[name].cast(kind) for name, kind in kinds.items()})
    # Its own number: if the same is tried twice at once, Delta refuses the second commit.
    txn = Txn(f"{WIDEN}:{table}", opened.version + 1)
    overwriting = writer(wide, txn, {"writer": WIDEN, "columns": dict(kinds)}).mode("overwrite")
    partitioned = overwriting.partitionBy(*opened.partitioned_by)
    partitioned.option("overwriteSchema", "true").save(path(settings, table))


def writer(df: "DataFrame", txn: Txn, record: Mapping[str, Any]) -> Any:
    """Spark's writer of the rows, with the transaction id and the record."""
    return (
        df.write.format("delta")
        .option("txnAppId", txn.app)
        .option("txnVersion", txn.version)
        .option("userMetadata", json.dumps(record, sort_keys=True))
    )


@singledispatch
def merge(
    rows: Any,
    settings: "Settings",
    table: str,
    key: Sequence[str],
    newer: str,
    txn: Txn,
    record: Mapping[str, Any],
) -> None:
    """Upsert the rows (of Spark, or Arrow; alias ``s``) into the table (alias ``t``) by their key; two nulls are the same.

    A row is inserted where the table has none of its key, and replaces it where ``newer`` holds (SQL that both engines know).
    Delta takes the transaction id of a MERGE from the session's settings, so the session must belong to this writer alone.
    """
    spark = rows.sparkSession
    view = f"merge_{txn.app}_{txn.version}".replace(":", "_").replace(".", "_")
    on = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in key)
    rows.createOrReplaceTempView(view)
    try:
        with _committing(spark, txn, record):
            spark.sql(
                f"MERGE INTO delta.`{path(settings, table)}` t USING {view} s ON {on} "
                f"WHEN MATCHED AND {newer} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
    finally:
        spark.catalog.dropTempView(view)


def update(
    spark: "SparkSession",
    settings: "Settings",
    table: str,
    values: Mapping[str, str],
    where: str,
    txn: Txn,
    record: Mapping[str, Any],
) -> None:
    """Give columns new values (SQL, by name) in the rows that match ``where`` (Spark SQL), in one commit."""
    with _committing(spark, txn, record):
        new = ", ".join(f"`{name}` = {value}" for name, value in values.items())
        spark.sql(f"UPDATE delta.`{path(settings, table)}` SET {new} WHERE {where}")  # noqa: S608


def delete(
    spark: "SparkSession", settings: "Settings", table: str, where: str, txn: Txn, record: Mapping[str, Any]
) -> None:
    """Delete the rows that match ``where`` (Spark SQL), in one commit."""
    with _committing(spark, txn, record):
        spark.sql(f"DELETE FROM delta.`{path(settings, table)}` WHERE {where}")  # noqa: S608


@contextmanager
def _committing(spark: "SparkSession", txn: Txn, record: Mapping[str, Any]) -> Iterator[None]:
    """The settings from which Delta takes the transaction id and the record of a SQL statement."""
    conf = {
        "spark.databricks.delta.write.txnAppId": txn.app,
        "spark.databricks.delta.write.txnVersion": str(txn.version),
        "spark.databricks.delta.commitInfo.userMetadata": json.dumps(record, sort_keys=True),
    }
    for option, value in conf.items():
        spark.conf.set(option, value)
    try:
        yield
    finally:
        for option in conf:
            spark.conf.unset(option)


@merge.register(pa.Table)
def _(
    rows: pa.Table,
    settings: "Settings",
    table: str,
    key: Sequence[str],
    newer: str,
    txn: Txn,
    record: Mapping[str, Any],
) -> None:
    from lockstep.lake.small_commits import SmallCommits

    SmallCommits(settings, table).merge(rows, key, newer, txn, record)
