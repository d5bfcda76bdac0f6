"""Small reads and commits without Spark: Arrow rows out of and into Delta tables with delta-rs, in milliseconds.

Writes are only allowed while nobody else writes to the table: Spark's log store for a local disk guards its commits inside one
JVM, so Spark and delta-rs must never commit to the same table at the same time. A lease sees to it: the table's, or that of the
live query's checkpoint.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from pyarrow import fs

from lockstep.dictionary import Texts
from lockstep.lake import version_checksum
from lockstep.lake.paths import path

if TYPE_CHECKING:
    from lockstep.lake.writes import Txn
    from lockstep.settings import Settings


# Bytes. Files of this size are read efficiently as they are.
SMALL_FILE = 64 << 20
# Years. DataFusion's literals of times are 64 bits of nanoseconds.
_HAS_LITERALS = (1700, 2200)
# The values of the partition columns, by name.
Partition = tuple[tuple[str, str], ...]


class SmallCommits:
    """Writes to a table that exists. Each write has a transaction id: a write that runs twice changes nothing.

    Args:
        table: ``layer.name``.
    """

    def __init__(self, settings: "Settings", table: str) -> None:
        self._settings, self._name = settings, table
        self._path = path(settings, table)
        self._table = DeltaTable(self._path)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return pa.schema(self._table.schema().to_arrow())

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns, as Delta names them; that of a nested column is its class."""
        return _types(self._table)

    @property
    def texts(self) -> Texts:
        """The comments of the table and of its columns."""
        comments = {
            f.name: str(f.metadata["comment"]) for f in self._table.schema().fields if f.metadata.get("comment")
        }
        return Texts(self._table.metadata().description or "", comments)

    @property
    def partitioned_by(self) -> list[str]:
        """The columns by which the table is partitioned."""
        return list(self._table.metadata().partition_columns)

    @property
    def version(self) -> int:
        """The newest version that this object knows."""
        return self._table.version()

    def last_transaction(self, app: str) -> int:
        """The number of the last commit of ``app`` that this object knows; 0: there is none."""
        return self._table.transaction_version(app) or 0

    def append(self, rows: pa.Table, txn: "Txn", record: Mapping[str, Any]) -> None:
        """Append the rows and the record in one commit."""
        if not self._has(txn):
            with self._committing():
                properties = _properties(txn, record)
                write_deltalake(self._table, self._ordered(rows), mode="append", commit_properties=properties)

    def replace(self, rows: pa.Table, where: str, txn: "Txn", record: Mapping[str, Any]) -> None:
        """Replace the rows that match ``where`` (SQL of DataFusion) by these and write the record, in one commit.

        Raises:
            DeltaError: one of these rows does not match it.
        """
        if not self._has(txn):
            properties = _properties(txn, record)
            ordered = self._ordered(rows)
            with self._committing():
                write_deltalake(self._table, ordered, mode="overwrite", predicate=where, commit_properties=properties)

    def merge(
        self, rows: pa.Table, key: Sequence[str], newer: str | None, txn: "Txn", record: Mapping[str, Any]
    ) -> None:
        """Upsert the rows (alias ``s``) into the table (alias ``t``) by their key, in one commit.

        Files whose times and whole numbers of the key are others are not read.

        Args:
            newer: the predicate (SQL of DataFusion) for a row that replaces the one of its key; None: every one does.

        Raises:
            DeltaError: two of the rows have the same key.
        """
        if self._has(txn):
            return
        properties = _properties(txn, record)
        on = _same_key(rows, key)
        before = self._table.version()
        merge = self._table.merge(rows, on, source_alias="s", target_alias="t", commit_properties=properties)
        with self._committing():
            merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()
        if self._table.version() == before:
            # delta-rs does not commit a MERGE that changes nothing.
            self.append(self.schema.empty_table(), txn, record)

    def file_sizes(self) -> dict[Partition, list[int]]:
        """The bytes of each data file of the table, by partition. A table without partitions has one, which is empty."""
        self._table.update_incremental()
        sizes = defaultdict(list)
        files = pa.table(self._table.get_add_actions())
        partitioned = "partition" in files.column_names
        for file in files.select(["size_bytes", *(["partition"] if partitioned else [])]).to_pylist():
            sizes[tuple(file.get("partition", {}).items())].append(file["size_bytes"])
        return dict(sizes)

    def compact(self, target: int = SMALL_FILE, partition: Partition = ()) -> None:
        """Put the rows of files that are smaller than ``target`` bytes into files of about this size, in one commit."""
        filters = [(name, "=", value) for name, value in partition]
        with self._committing():
            self._table.optimize.compact(partition_filters=filters or None, target_size=target)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table, where it has others: an older release may have created it."""
        if not properties.items() <= self._table.metadata().configuration.items():
            with self._committing():
                self._table.alter.set_table_properties(dict(properties))

    def checkpoint(self) -> int:
        """Write a checkpoint of the log at the newest version, and return the version."""
        self._table.update_incremental()
        self._table.create_checkpoint()
        return self._table.version()

    def vacuum(self, retain_hours: int, keep: int | None = None) -> None:
        """Remove files that no version of the last hours has, and that are as old: also those of writers that have died.

        Args:
            keep: a version that readers are held at, whose files stay.
        """
        given: dict[str, Any] = {
            "full": True,
            "keep_versions": None if keep is None else [keep],
            # The setting has a lower limit of its own.
            "enforce_retention_duration": False,
        }
        old = self._table.vacuum(retain_hours, dry_run=True, **given)
        # delta-rs names files for as long as the log does, and would commit each time that it has removed them.
        filesystem, root = fs.FileSystem.from_uri(self._path)
        if any(found.is_file for found in filesystem.get_file_info([f"{root}/{name}" for name in old])):
            with self._committing():
                self._table.vacuum(retain_hours, dry_run=False, **given)

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """The newest version that is committed meanwhile gets its checksum file."""
        before = self._table.version()
        yield
        if self._table.version() > before:
            version_checksum.write(self._settings, self._name, self._table.version())

    def _ordered(self, rows: pa.Table) -> pa.Table:
        """The rows with their columns as the table has them: what was added later comes last there."""
        return rows.select(self.schema.names)

    def _has(self, txn: "Txn") -> bool:
        """Whether the table has this write, or a later one of the same ``app``."""
        self._table.update_incremental()
        newest = self._table.transaction_version(txn.app)
        return newest is not None and newest >= txn.version


def commit_nothing(settings: "Settings", table: str, record: Mapping[str, Any]) -> None:
    """Make a commit that changes no row, with a record. Others take it for housekeeping."""
    opened, record_text = DeltaTable(path(settings, table)), json.dumps(record, sort_keys=True)
    opened.alter.set_table_properties(
        {"lockstep.repairedAfter": str(opened.version())},
        raise_if_not_exists=False,
        commit_properties=CommitProperties(custom_metadata={"userMetadata": record_text}),
    )
    version_checksum.write(settings, table, opened.version())


def types(settings: "Settings", table: str, version: int | None = None) -> dict[str, str]:
    """The types of the table's columns, as Delta names them; of a nested one, the name of its kind.

    Args:
        version: of the table; None: the newest.
    """
    return _types(DeltaTable(path(settings, table), version=version))


def _types(opened: DeltaTable) -> dict[str, str]:
    return {field.name: getattr(field.type, "type", "") for field in opened.schema().fields}


def collect(
    settings: "Settings",
    table: str,
    where: str,
    columns: Sequence[str] = (),
    version: int | None = None,
    at_most: int | None = None,
) -> pa.Table:
    """The rows of a table that match ``where``, as :func:`batches` has them. They must fit into memory.

    Args:
        at_most: so many of the rows, any of them; None: all.
    """
    schema, found = _query(settings, table, where, columns, version, at_most)
    return pa.table(found.read_all()).cast(schema)


def batches(
    settings: "Settings", table: str, where: str, columns: Sequence[str] = (), version: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table that match ``where`` (SQL that DataFusion knows), read without Spark, some thousand at a time.

    Args:
        columns: those that are read; none: all.
        version: of the table; None: the newest.
    """
    schema, found = _query(settings, table, where, columns, version)
    for batch in found:
        yield pa.record_batch(batch).cast(schema)


def _query(
    settings: "Settings",
    table: str,
    where: str,
    columns: Sequence[str],
    version: int | None,
    at_most: int | None = None,
) -> tuple[pa.Schema, Any]:
    opened = DeltaTable(path(settings, table), version=version)
    schema = pa.schema(opened.schema().to_arrow())
    columns = columns or schema.names
    # The names and the predicate are the platform's own; no value of a user is in them.
    query = f"SELECT {', '.join(map(_quoted, columns))} FROM slice WHERE {where}"  # noqa: S608
    if at_most is not None:
        query += f" LIMIT {at_most:d}"
    # DataFusion has types of its own for text, which pandas does not know.
    return pa.schema([schema.field(name) for name in columns]), QueryBuilder().register("slice", opened).execute(query)


def _quoted(column: str) -> str:
    return f'"{column}"'


def _same_key(rows: pa.Table, key: Sequence[str]) -> str:
    """The predicate for the row of the table that has the key of one of these rows; two nulls are the same."""
    ranges = (_between(name, rows[name]) for name in key if rows.num_rows and not rows[name].null_count)
    return " AND ".join([*filter(None, ranges), *(f"(t.`{name}` IS NOT DISTINCT FROM s.`{name}`)" for name in key)])


def _between(name: str, values: pa.ChunkedArray) -> str:
    """That a column is in the range of these values, as literals: with them, delta-rs leaves out files. Others have none."""
    if not pa.types.is_timestamp(values.type) and not pa.types.is_integer(values.type):
        return ""
    first, last = pc.min_max(values).as_py().values()
    if isinstance(first, datetime) and not _HAS_LITERALS[0] <= first.year <= last.year <= _HAS_LITERALS[1]:
        return ""
    return f"t.`{name}` BETWEEN {_literal(first)} AND {_literal(last)}"


def _literal(value: datetime | int) -> str:
    return f"timestamp '{value:%F %T.%f}'" if isinstance(value, datetime) else str(value)


def newest(rows: pa.Table, key: Sequence[str], *order: str) -> pa.Table:
    """Of each key the last row in the order of some columns. Pure."""
    ordered = rows.sort_by([(name, "ascending") for name in order])
    numbered = ordered.append_column("_row", pa.array(range(ordered.num_rows)))
    last = numbered.group_by([*key]).aggregate([("_row", "max")])
    return ordered.take(last["_row_max"])


def _properties(txn: "Txn", record: Mapping[str, Any]) -> CommitProperties:
    # The name under which Spark keeps it, so that one reader of the log is enough.
    return CommitProperties(
        custom_metadata={"userMetadata": json.dumps(record, sort_keys=True)},
        # With its time: Spark forgets a transaction without one where a table limits how long they are remembered.
        app_transactions=[Transaction(txn.app, txn.version, int(time.time() * 1000))],
    )
