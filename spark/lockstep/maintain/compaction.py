"""Compact the files of a table, by the engine that its size asks for."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.lake import compaction
from lockstep.lake.small_commits import SMALL_FILE, SmallCommits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# Bytes that one process compacts without Spark, in seconds and with little memory.
FEW_BYTES = 256 << 20
# Bytes. Spark takes and makes files of the sizes of compaction without it. By default it takes all below a gigabyte, so each row
# would be rewritten until its day has one.
_SPARKS_SIZES = {
    "spark.databricks.delta.optimize.minFileSize": SMALL_FILE // 2,
    "spark.databricks.delta.optimize.maxFileSize": SMALL_FILE,
}


def compact(spark: "SparkSession", settings: "Settings", table: str, opened: SmallCommits, *, by_spark: bool) -> None:
    """Compact the partitions of a table that have enough small files.

    Args:
        by_spark: only Spark may commit to the table.
    """
    found = [sum(compaction.taken(sizes)) for sizes in opened.file_sizes().values()]
    if not any(found):
        return
    if by_spark or max(found) > FEW_BYTES:
        for name, size in _SPARKS_SIZES.items():
            spark.conf.set(name, str(size))
        spark.sql(f"OPTIMIZE delta.`{lake.path(settings, table)}`")
    else:
        compaction.compact(opened)
