"""The classified rows of one run of refine: in Spark, or those of a small slice in Arrow.

Rows have the columns of :func:`lockstep.refine.parse.parse`, ``_unknown`` (see :mod:`lockstep.refine.unknown`), and
``_outcome``: silver, duplicates, quarantined, markers or erased.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import ledger
from lockstep.definition.columns import POSITION, generation
from lockstep.lake import small_commits
from lockstep.ledger.ranges import to_where
from lockstep.session import to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from lockstep.ledger.ranges import Range

OUTCOMES = ("silver", "duplicates", "quarantined", "markers")
# Records of which an erasure has left the position alone. They are counted where there are any.
ERASED = "erased"
# What only a few changes of a table have.
FLAGS = ("_fallen", "_truncates", "_ended", "_ends_snapshot")
_HAS_UNKNOWN = "_outcome = 'silver' AND _unknown IS NOT NULL"
# What makes a change of a table newer than another one of the same row.
_NEWEST = (*POSITION, "_offset")
# Generation and LSN of a commit of the source.
COMMIT = ("_generation", "_commit_lsn")
Commit = tuple[int, int]
# A DataFrame of Spark, or a table of Arrow.
Rows = Any


class Classified(Protocol):
    """The rows, by their outcome; in the form that :mod:`lockstep.lake` writes."""

    def counts(self) -> dict[str, int]:
        """The number of rows of each outcome."""

    def newest_timestamps(self) -> dict[int, int]:
        """Per partition, the newest Kafka timestamp of all rows (milliseconds, UTC)."""

    def unknown(self) -> dict[str, int]:
        """By the name of a field that the contract does not name: how many rows that go to silver have it."""

    def silver(self, columns: list[str]) -> Rows:
        """The rows that go to silver."""

    def quarantined(self, ranges: "list[Range]", run_id: str, columns: list[str]) -> Rows:
        """The rows of the ranges that go to quarantine, with ``_run_id``."""

    def newest(self, key: tuple[str, ...], columns: list[str]) -> Rows:
        """Of each row of the source table, its newest change that goes to silver."""

    def any(self, flag: str) -> bool:
        """Whether a change has one of :data:`FLAGS`."""

    def newest_commits(self) -> dict[int, Commit]:
        """Per partition, the newest commit of the changes that were streamed (see :mod:`lockstep.refine.source_order`)."""

    def in_spark(self, spark: "SparkSession", /) -> "DataFrame":
        """All rows, for what happens rarely."""


@contextmanager
def kept_in_spark(rows: "DataFrame", are_changes: bool) -> "Iterator[InSpark]":
    """The classified rows of a stream of events or of changes, kept in Spark's memory until the block ends."""
    rows = rows.persist()
    try:
        yield InSpark(rows, are_changes)
    finally:
        rows.unpersist()


class InSpark:
    """Rows that Spark has."""

    def __init__(self, rows: "DataFrame", are_changes: bool) -> None:
        self._rows, self._are_changes = rows, are_changes

    @cached_property
    def _of_partitions(self) -> "list[Row]":
        """What is asked of all rows, by partition, in one pass: a job of Spark costs a third of a second."""
        found = [F.count_if(F.col("_outcome") == name).alias(name) for name in (*OUTCOMES, ERASED)]
        found.append(F.unix_millis(F.max("_arrival")).alias("newest"))
        found.append(F.bool_or(F.expr(_HAS_UNKNOWN)).alias("unknown"))
        if self._are_changes:
            found += [F.bool_or(flag).alias(flag) for flag in FLAGS]
            found.append(F.max(F.when(F.col("_streamed"), F.struct(*COMMIT))).alias("commit"))
        return self._rows.groupBy("_partition").agg(*found).collect()

    def counts(self) -> dict[str, int]:
        found = {name: sum(row[name] for row in self._of_partitions) for name in (*OUTCOMES, ERASED)}
        return _by_outcome({name: count for name, count in found.items() if count})

    def newest_timestamps(self) -> dict[int, int]:
        return {row["_partition"]: row["newest"] for row in self._of_partitions}

    def unknown(self) -> dict[str, int]:
        if not any(row["unknown"] for row in self._of_partitions):
            return {}
        names = self._rows.where(_HAS_UNKNOWN).select(F.explode(F.from_json("_unknown", "ARRAY<STRING>")).alias("name"))
        most = names.groupBy("name").count().orderBy(F.desc("count"), "name").limit(ledger.MOST_UNKNOWN)
        return {row["name"]: row["count"] for row in most.collect()}

    def silver(self, columns: list[str]) -> "DataFrame":
        return self._rows.where("_outcome = 'silver'").select(*columns)

    def quarantined(self, ranges: "list[Range]", run_id: str, columns: list[str]) -> "DataFrame":
        bad = self._rows.where("_outcome = 'quarantined'").where(to_where(ranges, "_partition", "_offset"))
        return bad.withColumn("_run_id", F.lit(run_id)).select(*columns)

    def newest(self, key: tuple[str, ...], columns: list[str]) -> "DataFrame":
        return newest(self.silver(columns), key)

    def any(self, flag: str) -> bool:
        return any(row[flag] for row in self._of_partitions)

    def newest_commits(self) -> dict[int, Commit]:
        return {row["_partition"]: tuple(row["commit"]) for row in self._of_partitions if row["commit"]}

    def in_spark(self, _: "SparkSession", /) -> "DataFrame":
        return self._rows


class Collected:
    """Rows of a small slice, in Arrow."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def counts(self) -> dict[str, int]:
        found = {count["values"]: count["counts"] for count in self._rows["_outcome"].value_counts().to_pylist()}
        return _by_outcome(found)

    def newest_timestamps(self) -> dict[int, int]:
        newest = self._rows.group_by("_partition").aggregate([("_arrival", "max")]).to_pylist()
        return {row["_partition"]: round(row["_arrival_max"].timestamp() * 1000) for row in newest}

    def unknown(self) -> dict[str, int]:
        names = self._rows.filter((pc.field("_outcome") == "silver") & pc.field("_unknown").is_valid())["_unknown"]
        return ledger.most_frequent(Counter(name for text in names.to_pylist() for name in json.loads(text)))

    def silver(self, columns: list[str]) -> pa.Table:
        return self._rows.filter(pc.field("_outcome") == "silver").select(columns)

    def quarantined(self, ranges: "list[Range]", run_id: str, columns: list[str]) -> pa.Table:
        within = (
            (pc.field("_partition") == r.partition) & (pc.field("_offset") >= r.start) & (pc.field("_offset") < r.end)
            for r in ranges
        )
        bad = self._rows.filter(
            (pc.field("_outcome") == "quarantined") & reduce(lambda left, right: left | right, within)
        )
        return bad.append_column("_run_id", pa.array([run_id] * bad.num_rows, pa.string())).select(columns)

    def newest(self, key: tuple[str, ...], columns: list[str]) -> pa.Table:
        return small_commits.newest(self.silver(columns), key, *_NEWEST)

    def any(self, flag: str) -> bool:
        return bool(pc.any(self._rows[flag]).as_py())

    def newest_commits(self) -> dict[int, Commit]:
        found: dict[int, Commit] = {}
        for row in self._rows.filter(pc.field("_streamed")).select(["_partition", *COMMIT]).to_pylist():
            at = (row["_generation"], row["_commit_lsn"])
            found[row["_partition"]] = max(at, found.get(row["_partition"], at))
        return found

    def in_spark(self, spark: "SparkSession", /) -> "DataFrame":
        return to_dataframe(spark, self._rows)


def counted(rows: "DataFrame") -> dict[str, int]:
    """The number of classified rows with each outcome."""
    by_outcome = {row["_outcome"]: row["count"] for row in rows.groupBy("_outcome").count().collect()}
    return _by_outcome(by_outcome)


def _by_outcome(found: Mapping[str, int]) -> dict[str, int]:
    erased = {ERASED: found[ERASED]} if ERASED in found else {}
    return {outcome: found.get(outcome, 0) for outcome in OUTCOMES} | erased


def newest(changes: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    """The newest change of each row of the source table."""
    order = (generation() if name == "_generation" else F.col(name) for name in _NEWEST)
    window = Window.partitionBy(*key).orderBy(*(column.desc() for column in order))
    return changes.withColumn("_rank", F.row_number().over(window)).where("_rank = 1").drop("_rank")
