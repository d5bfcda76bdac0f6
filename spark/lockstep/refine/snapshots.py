"""A snapshot of a captured table that is finished: the rows that it does not have are gone.

Debezium begins its snapshot anew if it dies before it has noted that it was finished, and it reads the table again when somebody
asks for it. What was deleted in between has no record. Debezium marks the last row of a table in its snapshot; a table without
rows, and one with a single row that it reads first, have no such mark.

The rows of a snapshot have the place in the log at which Debezium stood when it began: the LSN of that moment where it begins
with a snapshot, and that of its last change where it stops to read the log for one. So they may be newer than their place says:
the changes that made them so follow.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.definition.columns import generation
from lockstep.refine import deletes
from lockstep.refine.truncates import Truncate, is_before

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def write_deletes(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    current: str,
    rows: "DataFrame",
    truncated: Truncate | None,
) -> None:
    """Write a delete for each current row that a snapshot which these rows finish should have had, and has not.

    Such a row is older than the snapshot, and came before it. A transaction that was open when the snapshot began is older too,
    but comes after it. A delete comes right after the change that left the row, so that it is older than any other change of it.

    Args:
        current: the table with the current rows, which has those of the snapshot.
        rows: the rows of a run.
        truncated: the newest TRUNCATE up to here, whose own deletes are written as well.
    """
    older = is_before(truncated) if truncated else F.lit(False)
    for end in (
        rows.where("_ends_snapshot")
        .select(generation().alias("generation"), "_commit_lsn", "_lsn", "_arrival", _at())
        .collect()
    ):
        snapshot = (end["generation"], end["_commit_lsn"], end["_lsn"])
        came_before = F.col("_arrival") < F.lit(end["_arrival"])
        gone = ~F.col("_deleted") & is_before(snapshot) & came_before & ~older
        position = {
            "generation": generation(),
            "commit_lsn": F.col("_commit_lsn"),
            "lsn": F.col("_lsn") + 1,
            "at": F.lit(end["at"]),
        }
        deletes.write(spark, settings, contract, lake.read(spark, settings, current).where(gone).withColumns(position))


def _at() -> "Column":
    return F.unix_millis("_committed_at").alias("at")
