"""The order of the source's log: a stream of changes whose LSNs go back must not be taken for one of old changes.

Debezium writes the changes of a table in the order of their commits, so a partition's commit LSNs only rise. They fall in two
cases. After a crash Debezium sends its last records again: silver knows these. And a database that was restored from a backup, or
replaced by another one, counts from a lower LSN: all its changes would be older than what silver has, and have no effect.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.refine.classified import COMMIT, Commit
from lockstep.refine.parse import GOOD, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from lockstep.contracts import Contract
    from lockstep.definition.tables import Tables
    from lockstep.settings import Settings


class SourceWentBack(LockstepError):
    """The LSNs of a captured table fell: its database was restored or replaced."""


def with_order(parsed: "DataFrame", before: "Mapping[int, Commit]") -> "DataFrame":
    """Add ``_streamed``, a valid change that is not of a snapshot, and ``_fallen``, which of these are below an earlier commit.

    ``_earlier_commit`` is the LSN of that commit, the newest before it in its partition.
    Rows of a snapshot have the place at which it began. A transaction that was open then may have begun below it; and Debezium
    reads the table again, and begins at the same place, if it dies before it has noted that it is past it.

    Args:
        parsed: all records of some ranges of changes, one for each partition.
        before: per partition, the newest commit before its range.
    """
    good = F.expr(GOOD) & ~F.col("_by_us")
    flagged = parsed.withColumn("_streamed", F.coalesce(good & (F.col("_op") != "r"), F.lit(False)))
    commit = F.struct(*COMMIT)
    earlier = Window.partitionBy("_partition").orderBy("_offset").rowsBetween(Window.unboundedPreceding, -1)
    newest = F.greatest(F.max(F.when(F.col("_streamed"), commit)).over(earlier), _commit_before(before))
    fallen = F.coalesce(F.col("_streamed") & (commit < newest), F.lit(False))
    return flagged.withColumns({"_fallen": fallen, "_earlier_commit": newest[COMMIT[1]]})


def _commit_before(before: "Mapping[int, Commit]") -> "Column":
    """The newest commit of the row's partition, null where there is none."""
    none = F.struct(F.lit(None).cast("int").alias(COMMIT[0]), F.lit(None).cast("bigint").alias(COMMIT[1]))
    known = F.when(F.lit(False), none)
    for partition, (generation, lsn) in before.items():
        commit = (F.lit(generation).cast("int").alias(COMMIT[0]), F.lit(lsn).cast("bigint").alias(COMMIT[1]))
        known = F.when(F.col("_partition") == partition, F.struct(*commit)).otherwise(known)
    return known


def check_order(
    spark: "SparkSession", settings: "Settings", contract: "Contract", tables: "Tables", rows: "DataFrame"
) -> None:
    """Check that what has ``_fallen`` was sent before, or that a newer generation of the source follows it.

    Args:
        rows: the classified rows of a run of refine.

    Raises:
        SourceWentBack: neither is so.
    """
    # Also what was sent before the dedup window, and with another commit: a row's own LSN is that of one change.
    change = [*contract.unique_id, "_lsn"]
    good = rows.where("_outcome = 'silver'")
    known = good.where("NOT _fallen").select(*change)
    if lake.exists(settings, tables.log):
        known = known.unionByName(lake.read(spark, settings, tables.log).select(*change))
    fallen = good.where("_fallen").join(known, change, "left_anti")
    first = fallen.orderBy("_partition", "_offset").limit(1).collect()
    if first and not _is_followed_by_a_newer_generation(spark, settings, contract, tables, first[0]):
        raise SourceWentBack(_message(contract, first[0]))


def _is_followed_by_a_newer_generation(
    spark: "SparkSession", settings: "Settings", contract: "Contract", tables: "Tables", row: "Row"
) -> bool:
    later = lake.read(spark, settings, tables.bronze).where(
        (F.col("partition") == row["_partition"]) & (F.col("offset") > row["_offset"])
    )
    return not parse(later, contract).where(F.col("_generation") > row["_generation"]).isEmpty()


def _message(contract: "Contract", row: "Row") -> str:
    return (
        f"{contract.topic}-{row['_partition']}: the change at offset {row['_offset']} has the commit LSN "
        f"{row['_commit_lsn']} (row LSN {row['_lsn']}, generation {row['_generation']}), below {row['_earlier_commit']} of a "
        "commit before it, and it was never sent before. The source database was restored from a backup or replaced by another "
        "one, so all its changes would count as old ones. Nothing of this run was written. `lockstep snapshot` takes the tables "
        "as they are now, in a new generation whose changes are newer than all before, and deletes the rows that are gone."
    )
