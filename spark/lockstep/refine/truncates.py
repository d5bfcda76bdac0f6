"""A TRUNCATE, as one delete for each row that it has ended (:mod:`lockstep.refine.deletes`).

Debezium tells of a TRUNCATE in one record without a row. Its deletes have its position in the source's log: rows that were
inserted after it are newer than they are, and stay.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.definition.columns import POSITION, generation
from lockstep.refine import deletes
from lockstep.refine.parse import GOOD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# A position, and the time of the commit (milliseconds, UTC).
Truncate = tuple[int, ...]


def newest_truncate(rows: "DataFrame", before: Truncate | None) -> Truncate | None:
    """The newest TRUNCATE among the rows of a run, or the one before them."""
    at = F.coalesce(F.unix_millis("_committed_at"), F.lit(0))
    of_run = rows.where("_truncates").select(*POSITION, at)
    return max([*(tuple(row) for row in of_run.collect()), *([before] if before else [])], default=None)


def with_ended(changes: "DataFrame", truncate: Truncate | None) -> "DataFrame":
    """Add ``_ended``: a valid change that came after a TRUNCATE, from another partition, and is older than it."""
    ended = F.expr(GOOD) & ~F.col("_deleted") & is_before(truncate) if truncate else F.lit(False)
    return changes.withColumn("_ended", F.coalesce(ended, F.lit(False)))


def is_before(position: tuple[int, ...]) -> "Column":
    """Whether a change is older than a position: its generation, the LSN of its commit, and its own."""
    own = F.struct(generation().alias("g"), F.col("_commit_lsn").alias("c"), F.col("_lsn").alias("l"))
    of_position = zip(("int", "bigint", "bigint"), "gcl", position[:3], strict=True)
    return own < F.struct(*(F.lit(value).cast(kind).alias(name) for kind, name, value in of_position))


def write_deletes(
    spark: "SparkSession", settings: "Settings", contract: "Contract", current: str, truncate: Truncate
) -> None:
    """Write a delete for each current row that is older than the TRUNCATE to the topic.

    Args:
        current: the table with the current rows.
    """
    ended = lake.read(spark, settings, current).where(~F.col("_deleted") & is_before(truncate))
    end = {name: F.lit(value) for name, value in zip(deletes.End.__dataclass_fields__, truncate, strict=True)}
    deletes.write(spark, settings, contract, ended.withColumns(end))
