"""A table of the platform's own bookkeeping, such as ``ops.published``: each commit has rows, and a record.

The record (in ``userMetadata``) is ``{writer, seq, …}`` and is read without Spark. ``seq`` rises by one with every commit. It is
also the version of the commit's transaction id, so a commit that is tried twice is made once.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.control.leases import lease
from lockstep.definition.columns import Columns, ddl
from lockstep.lake import Commit
from lockstep.ledger.entries import txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class OpsTable:
    """A table that one writer appends to.

    Args:
        name: ``ops.<name>``.
        columns: of its rows.
        writer: the name in its records; commits of others, such as OPTIMIZE, have none.
    """

    name: str
    columns: Columns
    writer: str

    def commits(self, settings: "Settings") -> Iterator[Commit]:
        """The writer's commits, newest first; needs no Spark."""
        return (c for c in lake.commits(settings, self.name) if c.record.get("writer") == self.writer)

    def newest(self, settings: "Settings") -> Mapping[str, Any]:
        """The newest record; empty before the first."""
        return next((commit.record for commit in self.commits(settings)), {})

    @contextmanager
    def writing(self, spark: "SparkSession", settings: "Settings", holder: str) -> "Iterator[NextCommit]":
        """Lock the table, so that nobody else appends between the reading of its newest record and the next commit.

        Args:
            holder: who holds it, such as the id of the run.

        Raises:
            LeaseHeld: somebody else holds it.
        """
        with lease(settings, self.name, holder):
            yield NextCommit(self, spark, settings, self.newest(settings))


@dataclass(frozen=True)
class NextCommit:
    """The next commit to a table, while the table is locked.

    Args:
        newest: the record of the commit before it; empty for the first.
    """

    table: OpsTable
    spark: "SparkSession"
    settings: "Settings"
    newest: Mapping[str, Any]

    @property
    def seq(self) -> int:
        """Its number, from 1."""
        return int(self.newest.get("seq", 0)) + 1

    def record(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Its record: the fields, who wrote it, and its number."""
        return {**fields, "writer": self.table.writer, "seq": self.seq}

    def append(self, rows: "Rows | DataFrame", fields: Mapping[str, Any]) -> None:
        """Append the rows and the record in one commit; the table is created where it is missing."""
        name, record = self.table.name, self.record(fields)
        lake.append(self._frame(rows), self.settings, name, txn(name, record), record)

    def replace(self, rows: "Rows | DataFrame", where: str, fields: Mapping[str, Any]) -> None:
        """Put the rows in the place of those that match ``where`` (SQL), and commit the record with them."""
        name, record = self.table.name, self.record(fields)
        lake.replace(self._frame(rows), self.settings, name, where, txn(name, record), record)

    def _frame(self, rows: "Rows | DataFrame") -> "DataFrame":
        if not lake.exists(self.settings, self.table.name):
            lake.create(self.spark, self.settings, self.table.name, self.table.columns)
        return self.spark.createDataFrame(rows, ddl(self.table.columns)) if isinstance(rows, list) else rows
