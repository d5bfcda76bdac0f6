"""Versioned tables in memory, with Delta's rule for transaction ids: a commit whose number was seen is skipped."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import pyarrow as pa
from tests.support.simulation import sql

from lockstep.lake import Commit, Txn

Row = Mapping[str, Any]
Change = Callable[[list[Row]], list[Row]]
_TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "BOOLEAN": pa.bool_(),
}
# 2026-11-11 10:00 UTC, in milliseconds.
_FIRST_TICK = 1_794_391_200_000
_STATISTICS = ("timestamp", "_arrival")


class Rows(list[Row]):
    """Rows, with the few methods of a DataFrame that the platform calls."""

    def where(self, predicate: str) -> Self:
        """Those for which the predicate holds."""
        return type(self)(row for row in self if sql.evaluate(predicate, row))

    def select(self, *columns: str) -> Self:
        """These columns only."""
        return type(self)({name: row.get(name) for name in columns} for row in self) if columns else self

    def unionByName(self, other: Iterable[Row]) -> Self:
        """All of both."""
        return type(self)([*self, *other])

    unionAll = unionByName

    def exceptAll(self, other: Iterable[Row]) -> Self:
        """Those that the other has not, each as often as it has more of it."""
        left = Counter(map(_hashable, other))
        rest = []
        for row in self:
            if left[_hashable(row)] > 0:
                left[_hashable(row)] -= 1
            else:
                rest.append(row)
        return type(self)(rest)

    def distinct(self) -> Self:
        """Each once."""
        return type(self)({_hashable(row): row for row in self}.values())

    def join(self, other: "Rows", on: Sequence[str], how: str) -> Self:
        """Those with a partner (``left_semi``), or without (``left_anti``)."""
        partners = {tuple(row[name] for name in on) for row in other}
        return type(self)(row for row in self if (tuple(row[n] for n in on) in partners) == (how == "left_semi"))

    def withColumn(self, name: str, value: Any) -> Self:
        """With one more column, of one value."""
        return type(self)({**row, name: value} for row in self)

    @property
    def columns(self) -> list[str]:
        """The columns of the first row."""
        return [*self[0]] if self else []

    def count(self) -> int:  # type: ignore[override]
        """How many there are."""
        return len(self)

    def persist(self) -> Self:
        """Themselves: they are in memory."""
        return self

    unpersist = persist

    def isEmpty(self) -> bool:
        """Whether there is none."""
        return not self

    def _to_table(self) -> tuple[Self, None]:
        """Themselves: the simulated tables take them as they are."""
        return self, None


def _hashable(row: Row) -> tuple[Any, ...]:
    return tuple(sorted(row.items()))


def rows_of(rows: Any) -> Rows:
    """Rows, also of an Arrow table."""
    return Rows(rows.to_pylist() if isinstance(rows, pa.Table) else rows)


@dataclass
class Table:
    """One table: each version's commit and rows, oldest first."""

    schema: pa.Schema | None = None
    versions: list[tuple[Commit, Rows]] = field(default_factory=list)
    transactions: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        """The rows of the newest version."""
        return self.versions[-1][1] if self.versions else Rows()


@dataclass(frozen=True)
class Write:
    """A commit that is on its way to a table."""

    table: str
    txn: Txn
    record: Mapping[str, Any]
    operation: str
    rows: Rows
    change: Change


class Lake:
    """All tables, by ``layer.name``."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        # Counts all commits, so that a version has one time, and no two have the same. All are after the last event of a run.
        self.ticks = _FIRST_TICK

    def create(self, name: str, columns: Mapping[str, str] | None = None) -> None:
        """Create a table, unless it is there."""
        if name not in self.tables:
            fields = [(column, _TYPES.get(kind, pa.string())) for column, kind in (columns or {}).items()]
            self.tables[name] = Table(pa.schema(fields))
            self._append(name, {}, "CREATE TABLE", Rows(), Rows())

    def commits(self, name: str) -> Iterator[Commit]:
        """Newest first."""
        return (commit for commit, _ in reversed(self.tables[name].versions)) if name in self.tables else iter(())

    def read(self, name: str, version: int | None = None) -> Rows:
        """The rows, now or as of a version."""
        table = self.tables[name]
        return table.rows if version is None else table.versions[version][1]

    def commit(self, write: Write) -> bool:
        """Commit, unless the transaction is known; whether it was committed."""
        table = self.tables.setdefault(write.table, Table())
        if table.transactions.get(write.txn.app, -1) >= write.txn.version:
            return False
        table.transactions[write.txn.app] = write.txn.version
        self._append(write.table, write.record, write.operation, write.rows, Rows(write.change(table.rows)))
        return True

    def spoil(self, name: str, change: Change) -> None:
        """Somebody changes rows by hand."""
        self._append(name, {}, "UPDATE", Rows(), Rows(change(self.tables[name].rows)))

    def optimize(self, name: str) -> None:
        """A commit of housekeeping, which changes no row."""
        self._append(name, {}, "OPTIMIZE", Rows(), self.tables[name].rows)

    def _append(self, name: str, record: Mapping[str, Any], operation: str, written: Rows, rows: Rows) -> None:
        table = self.tables[name]
        self.ticks += 1
        commit = Commit(
            table=name,
            version=len(table.versions),
            timestamp=self.ticks,
            operation=operation,
            rows=len(written),
            # What is read back went through JSON.
            record=json.loads(json.dumps(record)),
            files=(_statistics(written),) if written else (),
        )
        table.versions.append((commit, rows))


def _statistics(rows: Rows) -> dict[str, Any]:
    times = {name: [row[name] for row in rows] for name in _STATISTICS if name in rows[0]}
    low, high = ({name: _text(of(at)) for name, at in times.items()} for of in (min, max))
    return {"numRecords": len(rows), "minValues": low, "maxValues": high}


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def merged(rows: Iterable[Row], key: Sequence[str], newer: str | None) -> Change:
    """What a MERGE of the rows makes of a table."""
    sources = [*rows]

    def change(before: list[Row]) -> list[Row]:
        after = [*before]
        for source in sources:
            found = [n for n, target in enumerate(before) if all(target[k] == source[k] for k in key)]
            if not found:
                after.append(source)
            elif newer is None or sql.matches(newer, before[found[0]], source):
                after[found[0]] = source
        return after

    return change


def replaced(rows: Iterable[Row], where: str) -> Change:
    """What replacing the rows of a predicate makes of a table. Each of the new rows must match it."""
    new = Rows(rows)
    assert len(new.where(where)) == len(new), f"a row is written outside of {where}"
    return lambda before: [*(row for row in before if not sql.evaluate(where, row)), *new]


def appended(rows: Iterable[Row]) -> Change:
    """What appending the rows makes of a table."""
    return lambda before: [*before, *rows]
