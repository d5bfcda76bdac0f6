"""Copy ledgers into ``ops.ledger``, because Delta deletes old commits from its log."""

import itertools
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.ledger.ops_table import OpsTable
from lockstep.ledger.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

COLUMNS = {
    "table": "STRING",
    "seq": "BIGINT",
    "version": "BIGINT",
    "run_id": "STRING",
    "code_version": "STRING",
    "rows": "BIGINT",
    "counts": "STRING",
    "topic": "STRING",
    "topic_id": "STRING",
    "partition": "INT",
    "start": "BIGINT",
    "end": "BIGINT",
    "committed_at": "TIMESTAMP",
}
TABLE = OpsTable("ops.ledger", COLUMNS, "archive")


def archive(spark: "SparkSession", settings: "Settings", table: str, run_id: str) -> int:
    """Append the table's entries that are not archived yet, one row per entry and partition, in one commit.

    Returns:
        The number of rows added.
    """
    with TABLE.writing(spark, settings, run_id) as commit:
        archived = commit.newest(table).get("archived", 0)
        new = list(itertools.takewhile(lambda entry: entry.seq > archived, ledger.entries(settings, table)))
        rows = [_row(entry, r) for entry in new for r in entry.ranges]
        if rows:
            commit.append(rows, {"run_id": run_id, "archived": new[0].seq}, table)
    return len(rows)


def _row(entry: ledger.Entry, r: Range) -> tuple[object, ...]:
    committed_at = datetime.fromtimestamp(entry.committed_at / 1000, UTC)
    origin = (entry.table, entry.seq, entry.version, entry.run_id, entry.code_version, entry.rows)
    return (*origin, json.dumps(entry.counts), r.topic, r.topic_id, r.partition, r.start, r.end, committed_at)
