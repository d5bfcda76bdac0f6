"""Copy every ledger into ``ops.ledger``, because a Delta log is cleaned up one day."""

import itertools
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.definition.columns import ddl
from lockstep.ledger.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

TABLE = "ops.ledger"
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


def archive(spark: "SparkSession", settings: "Settings", tables: list[str], run_id: str) -> int:
    """Append the entries that are not archived yet, one row per entry and partition, in one commit.

    Returns:
        How many rows were added.
    """
    before: Mapping[str, Any] = next(
        (c.record for c in lake.commits(settings, TABLE) if "archived" in c.record), {"seq": 0, "archived": {}}
    )
    done: dict[str, int] = dict(before["archived"])
    rows = []
    for table in tables:
        new = _newer(settings, table, done.get(table, 0))
        rows += [_row(entry, r) for entry in new for r in entry.ranges]
        if new:
            done[table] = new[0].seq
    if not rows:
        return 0
    lake.create(spark, settings, TABLE, COLUMNS)
    record = {"writer": "archive", "seq": before["seq"] + 1, "run_id": run_id, "archived": done}
    lake.append(spark.createDataFrame(rows, ddl(COLUMNS)), settings, TABLE, ledger.txn(TABLE, record), record)
    return len(rows)


def _newer(settings: "Settings", table: str, seq: int) -> list[ledger.Entry]:
    return list(itertools.takewhile(lambda entry: entry.seq > seq, ledger.entries(settings, table)))


def _row(entry: ledger.Entry, r: Range) -> tuple[object, ...]:
    committed_at = datetime.fromtimestamp(entry.committed_at / 1000, UTC)
    what = (entry.table, entry.seq, entry.version, entry.run_id, entry.code_version, entry.rows)
    return (*what, json.dumps(entry.counts), r.topic, r.topic_id, r.partition, r.start, r.end, committed_at)
