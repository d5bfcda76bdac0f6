"""Copy ledgers into ``ops.ledger``, and read them there: a log is kept for days, the archive for ever.

A log may only lose entries that the archive has. So Delta never cleans the log of a table with a ledger, and ``maintain`` removes
its oldest files after they were archived.
"""

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.errors import LedgerBroken
from lockstep.lake import Commit
from lockstep.ledger.chain import problems
from lockstep.ledger.entries import entry
from lockstep.ledger.ops_table import OpsTable
from lockstep.ledger.ranges import Range, decode, encode
from lockstep.ledger.torn import newest_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

COLUMNS = {
    "table": "STRING",
    "seq": "BIGINT",
    "version": "BIGINT",
    "committed_at": "TIMESTAMP",
    "run_id": "STRING",
    "code_version": "STRING",
    "rows": "BIGINT",
    "size": "BIGINT",
    "time_column": "STRING",
    "first": "TIMESTAMP",
    "last": "TIMESTAMP",
    "ranges": "ARRAY<STRUCT<topic: STRING, topic_id: STRING, partition: INT, start: BIGINT, end: BIGINT>>",
    "record": "STRING",
}
TABLE = OpsTable("ops.ledger", COLUMNS, "archive", partitioned_by="table")
# The layers whose tables have a ledger.
LAYERS = ("bronze.", "silver.", "quarantine.", "gold.")
# The column whose lowest and highest value are kept of each entry: when the rows of bronze and silver arrived, and the instants
# or the windows of gold's.
_TIME_COLUMNS = ("timestamp", "_arrival", "at", "window_start")


@dataclass(frozen=True)
class Archived:
    """What the archive has of a table.

    Args:
        seq, version: of the newest entry that it has.
        origin: per partition, the first offset that the ledger covers; of a table that has the rows of one topic.
    """

    seq: int = 0
    version: int = -1
    origin: Mapping[int, int] = field(default_factory=dict)


def archived(settings: "Settings", table: str) -> Archived:
    """What the archive has of a table. One row of the control database is read."""
    # Before the first archive, there may be no control database.
    known = TABLE.newest(settings) if lake.exists(settings, TABLE.name) else {}
    return _of(known.get("tables", {}), table)


@contextmanager
def archiving(spark: "SparkSession", settings: "Settings", run_id: str) -> Iterator[Callable[[str], int]]:
    """Take tables' entries that are not archived yet; all that were taken are appended in one commit when the block ends.

    Yields:
        A function that takes a table, and returns how many entries of it are new.

    Raises:
        LedgerBroken: by that function: entries are missing. Nothing of the table is archived, so that its log is kept.
    """
    with TABLE.writing(spark, settings, run_id) as commit:
        tables = dict(commit.newest().get("tables", {}))
        rows: list[tuple[object, ...]] = []

        def take(table: str) -> int:
            before = _of(tables, table)
            new = _new(settings, table, before)
            if new:
                rows.extend(map(_row, new))
                origin = {**_origin(new), **before.origin}
                tables[table] = {"seq": new[-1].record["seq"], "version": new[-1].version, "origin": origin}
            return len(new)

        yield take
        if rows:
            commit.append(rows, {"run_id": run_id, "tables": tables})


def read(settings: "Settings", table: str, where: str) -> list[Commit]:
    """The archived commits of a table's ledger that match ``where`` (SQL over :data:`COLUMNS`), newest first."""
    from lockstep.lake.small_commits import collect

    if not lake.exists(settings, TABLE.name):
        return []
    # The names of tables are the platform's own.
    rows = collect(settings, TABLE.name, f"\"table\" = '{table}' AND ({where})")
    return [_commit(row) for row in rows.sort_by([("seq", "descending")]).to_pylist()]


def count(settings: "Settings", tables: Collection[str]) -> int:
    """How many entries of these tables are archived."""
    from lockstep.lake.small_commits import collect

    if not tables or not lake.exists(settings, TABLE.name):
        return 0
    return int(collect(settings, TABLE.name, _of_tables(tables), ["seq"]).num_rows)


def forget(spark: "SparkSession", settings: "Settings", tables: Collection[str]) -> None:
    """Remove the entries of tables that are about to be removed themselves."""
    if not count(settings, tables) and not TABLE.newest(settings).get("tables", {}).keys() & {*tables}:
        return
    with TABLE.writing(spark, settings, "purge") as commit:
        kept = {name: known for name, known in commit.newest().get("tables", {}).items() if name not in tables}
        commit.replace([], _of_tables(tables), {"run_id": "purge", "tables": kept})


def take_back(spark: "SparkSession", settings: "Settings", ends: Mapping[str, int], run_id: str) -> None:
    """Remove the entries of logs that are about to be ended.

    Args:
        ends: by table, the first version that its log will not have any more.
    """
    known = TABLE.newest(settings).get("tables", {}) if lake.exists(settings, TABLE.name) else {}
    behind = {table: end for table, end in ends.items() if _of(known, table).version >= end}
    if not behind:
        return
    where = " OR ".join(f'("table" = \'{table}\' AND "version" >= {end:d})' for table, end in sorted(behind.items()))
    with TABLE.writing(spark, settings, run_id) as commit:
        tables = dict(commit.newest().get("tables", {}))
        for table, end in behind.items():
            newest = newest_entry(settings, table, end)
            if newest:
                tables[table] |= {"seq": newest.seq, "version": newest.version}
            else:
                del tables[table]
        commit.replace([], where, {"run_id": run_id, "tables": tables})


def forget_lost(spark: "SparkSession", settings: "Settings", run_id: str) -> None:
    """Go back to what the archive's own log says that it has, after its newest commits were lost: they are archived again."""
    recorded = (commit for commit in lake.commits(settings, TABLE.name) if "tables" in commit.record)
    newest = next(recorded, None)
    with TABLE.writing(spark, settings, run_id) as commit:
        commit.append([], {"run_id": run_id, "tables": newest.record["tables"] if newest else {}})


def _of_tables(tables: Collection[str]) -> str:
    # The names of tables are the platform's own.
    return " OR ".join(f"\"table\" = '{table}'" for table in sorted(tables))


def _of(tables: Mapping[str, Any], table: str) -> Archived:
    if table not in tables:
        return Archived()
    known = tables[table]
    return Archived(known["seq"], known["version"], {int(p): start for p, start in known["origin"].items()})


def _new(settings: "Settings", table: str, before: Archived) -> list[Commit]:
    """The commits of the entries that the archive does not have, oldest first."""
    recorded = (commit for commit in lake.commits(settings, table) if "ranges" in commit.record)
    # The newest archived entry stays in the log, so it must be there.
    found = [*itertools.takewhile(lambda commit: commit.version >= before.version, recorded)][::-1]
    if before.seq and (not found or found[0].version != before.version):
        raise LedgerBroken(
            f"{table}: its log no longer has entry {before.seq} (version {before.version}), the last one in {TABLE.name}. What "
            "came after it may be lost: restore the table's _delta_log from a backup. Nothing of it was archived or removed."
        )
    if table.startswith("bronze.") and (broken := [*problems(map(entry, found))]):
        raise LedgerBroken(f"{broken[0]}. Nothing of {table} was archived or removed; see `lockstep ledger verify`.")
    return [commit for commit in found if commit.version > before.version]


def _origin(oldest_first: list[Commit]) -> dict[int, int]:
    ranges = [r for commit in reversed(oldest_first) for r in entry(commit).ranges]
    # Gold has several topics, and nobody takes rows from it by their offsets.
    return {r.partition: r.start for r in ranges} if len({r.topic for r in ranges}) == 1 else {}


def _row(commit: Commit) -> tuple[object, ...]:
    record = dict(commit.record)
    ranges = [r.as_dict() for r in decode(record.pop("ranges"))]
    column, first, last = _times(commit)
    return (
        commit.table,
        record["seq"],
        commit.version,
        datetime.fromtimestamp(commit.timestamp / 1000, UTC),
        record["run_id"],
        record["code_version"],
        commit.rows,
        commit.size,
        column,
        first,
        last,
        ranges,
        json.dumps(record, sort_keys=True),
    )


def _times(commit: Commit) -> tuple[str | None, datetime | None, datetime | None]:
    for column in _TIME_COLUMNS:
        lows = [stats.get("minValues", {}).get(column) for stats in commit.files]
        highs = [stats.get("maxValues", {}).get(column) for stats in commit.files]
        if lows and None not in (*lows, *highs):
            return column, _moment(min(lows)), _moment(max(highs))
    return None, None, None


def _commit(row: Mapping[str, Any]) -> Commit:
    column, low, high = row["time_column"], row["first"], row["last"]
    times = ({"minValues": {column: _text(low)}, "maxValues": {column: _text(high)}},) if column else ()
    return Commit(
        table=row["table"],
        version=row["version"],
        timestamp=round(row["committed_at"].timestamp() * 1000),
        operation="",
        rows=row["rows"],
        record={**json.loads(row["record"]), "ranges": encode(Range(**r) for r in row["ranges"])},
        files=times,
        size=row["size"],
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
