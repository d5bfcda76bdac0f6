"""Small commits without Spark: Arrow rows into a Delta table with delta-rs, in milliseconds.

Only for a table that has *one writer*. Spark's log store for a local disk guards its commits inside one JVM, so Spark and
delta-rs must never commit to the same table at the same time.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lockstep.lake.paths import path

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.lake.writes import Txn
    from lockstep.settings import Settings


class SmallCommits:
    """The only writer of a table. Each write has a transaction id: a write that runs twice changes nothing.

    Args:
        table: ``layer.name`` of a table that exists.
    """

    def __init__(self, settings: "Settings", table: str) -> None:
        self._table = DeltaTable(path(settings, table))

    def has(self, txn: "Txn") -> bool:
        """Whether the table has this write, or a later one of the same ``app``."""
        self._table.update_incremental()
        newest = self._table.transaction_version(txn.app)
        return newest is not None and newest >= txn.version

    def append(self, rows: "pa.Table", txn: "Txn", record: Mapping[str, Any]) -> None:
        """Append the rows and the record in one commit."""
        write_deltalake(self._table, rows, mode="append", commit_properties=_properties(txn, record))

    def merge(
        self, rows: "pa.Table", key: Iterable[str], where: str, newer: str | None, txn: "Txn", record: Mapping[str, Any]
    ) -> None:
        """Upsert the rows (alias ``s``) by their key into the table (alias ``t``), in one commit.

        Args:
            where: the predicate (SQL of DataFusion) for the rows of the table that can match; it keeps old files unread.
            newer: the predicate for a row that replaces the one of its key; None: every one does.

        Raises:
            DeltaError: two of the rows have the same key.
        """
        same = (f"(t.`{name}` IS NOT DISTINCT FROM s.`{name}`)" for name in key)
        merge = self._table.merge(
            rows,
            predicate=" AND ".join([where, *same]),
            source_alias="s",
            target_alias="t",
            commit_properties=_properties(txn, record),
        )
        merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()

    def tidy(self, retain_hours: int) -> None:
        """Compact small files, and remove files that no reader needs any more. Each is a commit of its own, without a record."""
        self._table.optimize.compact()
        self._table.vacuum(retain_hours, dry_run=False)


def _properties(txn: "Txn", record: Mapping[str, Any]) -> CommitProperties:
    # The name under which Spark keeps it, so that one reader of the log is enough.
    return CommitProperties(
        custom_metadata={"userMetadata": json.dumps(record, sort_keys=True)},
        app_transactions=[Transaction(txn.app, txn.version)],
    )
