"""Compact the files of a table, by the engine that its size asks for."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.lake import compaction
from lockstep.lake.small_commits import SmallCommits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# Bytes that one process compacts without Spark, in seconds and with little memory.
FEW_BYTES = 256 << 20


def compact(spark: "SparkSession", settings: "Settings", table: str, opened: SmallCommits, *, by_spark: bool) -> None:
    """Compact the partitions of a table that have enough small files.

    Args:
        by_spark: only Spark may commit to the table.
    """
    found = [sum(compaction.taken(sizes)) for sizes in opened.file_sizes().values()]
    if not any(found):
        return
    if by_spark or max(found) > FEW_BYTES:
        spark.sql(f"OPTIMIZE delta.`{lake.path(settings, table)}`")
    else:
        compaction.compact(opened)
