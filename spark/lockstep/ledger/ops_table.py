"""A table of the platform's own bookkeeping, such as ``ops.published``: each commit has rows, and a record.

Readers have the rows, and the record (``userMetadata``) beside them. What the platform decides by is the newest record of each
key, which the control database keeps: Delta removes old commits from its logs, with their records.

A record is ``{writer, seq, key, …}``. ``seq`` rises by one with every commit, and is the version of its transaction id, so a
commit that is tried twice is made once. It is written to the Delta table first. If the writer dies then, or an older copy of the
database was restored, the next writer takes over what is newer in the log.
"""

import itertools
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep import lake
from lockstep.control import records
from lockstep.control.leases import lease
from lockstep.control.records import Record
from lockstep.definition.columns import Columns
from lockstep.errors import Overtaken
from lockstep.lake import Commit, Txn
from lockstep.ledger.entries import txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

log = logging.getLogger(__name__)
Rows = list[tuple[object, ...]]
# The field of a record that stands for none. A record that was only deleted from the database would come back from the log.
_FORGOTTEN = "forgotten"


@dataclass(frozen=True)
class OpsTable:
    """A table that one writer appends to.

    Args:
        name: ``ops.<name>``.
        columns: of its rows.
        writer: the name in its records; commits of others, such as OPTIMIZE, have none.
        properties: of the Delta table.
        partitioned_by: a column of it.
    """

    name: str
    columns: Columns
    writer: str
    properties: Mapping[str, str] | None = None
    partitioned_by: str = ""

    def newest(self, settings: "Settings", key: str = "") -> Mapping[str, Any]:
        """The newest record of a key; empty before the first."""
        found = records.of_key(settings, self.name, key)
        return found.fields if found and _FORGOTTEN not in found.fields else {}

    def newest_of_each_key(self, settings: "Settings") -> list[Record]:
        """The newest record of each key that is not forgotten, in the order in which they were written."""
        return [found for found in records.of_each_key(settings, self.name) if _FORGOTTEN not in found.fields]

    @contextmanager
    def writing(self, spark: "SparkSession", settings: "Settings", holder: str) -> "Iterator[NextCommit]":
        """Lock the table, so that nobody else appends between the reading of its newest record and the next commit.

        Args:
            holder: who holds it, such as the id of the run.

        Raises:
            LeaseHeld: somebody else holds it.
        """
        with lease(settings, self.name, holder):
            exists = lake.exists(settings, self.name)
            if not exists or not {*self.columns} <= {*lake.schema(settings, self.name).names}:
                lake.create(spark, settings, self.name, self.columns, self.partitioned_by, self.properties)
            recover(settings, self.name)
            known = records.newest(settings, self.name)
            # A new number, even where neither the log nor the database has a record of the last one any more.
            committed = lake.last_transaction(settings, self.name, self._txn(0).app) if exists else 0
            yield NextCommit(self, settings, max(known.seq if known else 0, committed) + 1)

    def _txn(self, seq: int) -> Txn:
        return txn(self.name, {"writer": self.writer, "seq": seq})


@dataclass(frozen=True)
class NextCommit:
    """The next commit to a table, while the table is locked.

    Args:
        seq: its number, from 1.
    """

    table: OpsTable
    settings: "Settings"
    seq: int

    def newest(self, key: str = "") -> Mapping[str, Any]:
        """The newest record of a key before this commit; empty before the first."""
        return self.table.newest(self.settings, key)

    def append(self, rows: "Rows | pa.Table | DataFrame", fields: Mapping[str, Any], key: str = "") -> None:
        """Append the rows and the record of the key in one commit.

        Raises:
            Overtaken: the table's lock was lost, and somebody else has written meanwhile.
        """
        record = self._record(fields, key)
        lake.append(self._frame(rows), self.settings, self.table.name, txn(self.table.name, record), record)
        self._decide(record)

    def replace(
        self, rows: "Rows | pa.Table | DataFrame", where: str, fields: Mapping[str, Any], key: str = ""
    ) -> None:
        """Put the rows in the place of those that match ``where`` (SQL), and commit the record with them."""
        record = self._record(fields, key)
        lake.replace(self._frame(rows), self.settings, self.table.name, where, txn(self.table.name, record), record)
        self._decide(record)

    def forget(self, key: str) -> None:
        """Commit that the key has no record any more, as a tombstone does in a compacted topic. The rows stay."""
        self.append([], {_FORGOTTEN: True}, key)

    def _record(self, fields: Mapping[str, Any], key: str) -> dict[str, Any]:
        return {**fields, "writer": self.table.writer, "seq": self.seq, "key": key}

    def _decide(self, record: Mapping[str, Any]) -> None:
        name = self.table.name
        if not records.put(self.settings, name, [Record(record["key"], record["seq"], record, datetime.now(UTC))]):
            raise Overtaken(f"{name}: somebody else has written its record {record['seq']}. Run this again.")

    def _frame(self, rows: "Rows | pa.Table | DataFrame") -> "pa.Table | DataFrame":
        if not isinstance(rows, list):
            return rows
        named = [dict(zip(self.table.columns, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(named, schema=lake.schema(self.settings, self.table.name))


def recover(settings: "Settings", table: str) -> int:
    """Take over the records of ``ops.<name>`` that are newer in its log than in the control database; return how many.

    Numbers that neither of the two has are named in a warning.
    """
    known = records.newest(settings, table)
    last = known.seq if known else 0
    newer = list(itertools.takewhile(lambda commit: commit.record["seq"] > last, _recorded(settings, table)))
    if not newer:
        return 0
    lost = sorted(set(range(last + 1, newer[0].record["seq"])) - {commit.record["seq"] for commit in newer})
    if lost:
        log.warning(
            "%s: %d of its records, from %d to %d, are neither in the control database nor in its log. What only they said is "
            "lost: restore a newer copy of the control database if there is one.",
            table,
            len(lost),
            lost[0],
            lost[-1],
        )
    # The newest one of each key.
    found = {commit.record["key"]: commit for commit in reversed(newer)}
    records.put(
        settings,
        table,
        [
            Record(key, c.record["seq"], c.record, datetime.fromtimestamp(c.timestamp / 1000, UTC))
            for key, c in found.items()
        ],
    )
    return len(found)


def _recorded(settings: "Settings", table: str) -> Iterator[Commit]:
    return (commit for commit in lake.commits(settings, table) if {"seq", "key"} <= commit.record.keys())
