"""What four ways of change capture see of the same transactions: the log, triggers, polling, and dual writes.

    python benchmarks/ways_of_capture.py --transactions 2000

Needs only PostgreSQL (`lockstep up postgres`), and drops what it makes there. The transactions are inserts, updates and deletes
of some keys, and one TRUNCATE; one in six is rolled back. Some programs forget to set `updated_at`, and some load rows with
triggers off. Then each way's changes are applied in the order in which it gives them, and the outcome is compared with the table.
"""

import struct
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

import psycopg2
import typer
from psycopg2.extensions import cursor
from rich.console import Console
from rich.table import Table

from lockstep import settings

KEYS, POLL_EVERY = 1_000, 20
# An application that dies between its two writes: one in so many.
DIES = 200
Rows = dict[int, int]


@dataclass
class Seen:
    """The changes that a way has seen: a key and its value, None for a delete; no key: a TRUNCATE."""

    changes: list[tuple[int | None, int | None]] = field(default_factory=list)

    def rows(self) -> Rows:
        """What is left when they are applied."""
        found: Rows = {}
        for key, value in self.changes:
            if key is None:
                found.clear()
            elif value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found


class Shop:
    """A table, what its triggers write, and an application that writes its changes to a topic too."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.name, self.dice = f"ways_{uuid.uuid4().hex[:8]}", Random(seed)  # noqa: S311
        self.database = psycopg2.connect(dsn)
        self.database.autocommit = False
        self.committed: list[tuple[int | None, int | None]] = []
        self.topic, self.polled, self.last = Seen(), Seen(), None
        self._do(_SCHEMA)
        self._do(f"SELECT pg_create_logical_replication_slot('{self.name}', 'pgoutput')")

    def close(self) -> None:
        """Drop what it has made."""
        self.database.rollback()
        self._do(f"SELECT pg_drop_replication_slot('{self.name}')")
        self._do("DROP TABLE {name}, {name}_outbox; DROP FUNCTION {name}_note; DROP PUBLICATION {name}")
        self.database.close()

    def write(self, transactions: int) -> None:
        """Write so many transactions; a poll follows every twentieth."""
        for number in range(transactions):
            changes = [self._change() for _ in range(self.dice.choice([1, 1, 2, 4]))]
            if number == transactions // 2:
                changes = [(None, None)]
            with self.database.cursor() as sql:
                if self.dice.random() < 1 / 100:
                    sql.execute("SET LOCAL session_replication_role = replica")
                # A delete of a row that is not there is no change.
                changes = [(key, value) for key, value in changes if self._run(sql, key, value)]
            if self.dice.random() < 1 / 6:
                self.database.rollback()
                continue
            self.database.commit()
            self.committed += changes
            if self.dice.random() >= 1 / DIES:
                self.topic.changes += changes
            if number % POLL_EVERY == 0:
                self._poll()
        self._poll()

    def rows(self) -> Rows:
        """The table."""
        return dict(self._query("SELECT id, value FROM {name}"))

    def logged(self) -> Seen:
        """What the log has, by PostgreSQL's own output plugin (Protocol: "Logical Replication Message Formats")."""
        messages = self._query(
            "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)",
            self.name,
            self.name,
        )
        return Seen([change for (message,) in messages for change in _of_message(bytes(message))])

    def outbox(self) -> Seen:
        """What the triggers wrote."""
        return Seen(self._query("SELECT id, value FROM {name}_outbox ORDER BY n"))

    def _change(self) -> tuple[int | None, int | None]:
        return self.dice.randrange(KEYS), self.dice.choice([None, *[self.dice.randrange(10**9)] * 3])

    def _run(self, sql: cursor, key: int | None, value: int | None) -> bool:
        stamps = self.dice.random() < 0.95
        statement = _TRUNCATE if key is None else _DELETE if value is None else _PUT if stamps else _PUT_WITHOUT_TIME
        sql.execute(statement.format(name=self.name), {"key": key, "value": value})
        return sql.rowcount != 0

    def _poll(self) -> None:
        new = "SELECT id, value, updated_at FROM {name} WHERE updated_at > %s OR %s IS NULL ORDER BY updated_at"
        rows = self._query(new, self.last, self.last)
        self.polled.changes += [(key, value) for key, value, _ in rows]
        self.last = rows[-1][2] if rows else self.last

    def _query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database, self.database.cursor() as sql:
            sql.execute(query.format(name=self.name), values or None)
            return sql.fetchall()

    def _do(self, statements: str) -> None:
        with self.database, self.database.cursor() as sql:
            sql.execute(statements.format(name=self.name))


_SCHEMA = """
CREATE TABLE {name} (id INT PRIMARY KEY, value INT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
ALTER TABLE {name} REPLICA IDENTITY FULL;
CREATE TABLE {name}_outbox (n BIGSERIAL, id INT, value INT);
CREATE FUNCTION {name}_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO {name}_outbox (id, value) VALUES (coalesce(NEW.id, OLD.id), NEW.value); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_note();
CREATE PUBLICATION {name} FOR TABLE {name}
"""


_TRUNCATE = "TRUNCATE {name}"
_DELETE = "DELETE FROM {name} WHERE id = %(key)s"
_PUT_WITHOUT_TIME = (
    "INSERT INTO {name} VALUES (%(key)s, %(value)s) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value"
)
_PUT = _PUT_WITHOUT_TIME + ", updated_at = clock_timestamp()"


def _of_message(message: bytes) -> Iterator[tuple[int | None, int | None]]:
    kind = message[:1]
    if kind == b"T":
        yield None, None
    elif kind == b"I":
        yield _numbers(message[6:])
    elif kind == b"D":
        yield _numbers(message[6:])[0], None
    elif kind == b"U":
        # The old row comes first, after an O: the new one follows an N.
        old = _length(message[6:])
        yield _numbers(message[6 + old + 1 :])


def _columns(row: bytes) -> Iterator[tuple[int, bytes]]:
    """The columns of a row as texts, and the place where each ends."""
    (count,), place = struct.unpack(">H", row[:2]), 2
    for _ in range(count):
        (length,) = struct.unpack(">I", row[place + 1 : place + 5])
        place += 5 + length
        yield place, row[place - length : place]


def _length(row: bytes) -> int:
    return max(place for place, _ in _columns(row))


def _numbers(row: bytes) -> tuple[int, int]:
    texts = [text for _, text in _columns(row)]
    return int(texts[0]), int(texts[1])


def main(
    transactions: Annotated[int, typer.Option(help="How many.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the transactions.")] = 1,
) -> None:
    """Write the transactions, and print what each way has seen of them."""
    current = settings.load()
    with closing(Shop(current.dsn(current.package), seed)) as shop:
        began = time.monotonic()
        shop.write(transactions)
        seconds, actual = time.monotonic() - began, shop.rows()
        ways: dict[str, Callable[[], Seen]] = {
            "the log": shop.logged,
            "triggers": shop.outbox,
            "polling updated_at": lambda: shop.polled,
            "dual writes": lambda: shop.topic,
        }
        table = Table("way", "changes seen", "rows that are wrong in the end", box=None)
        for way, seen in ways.items():
            found = seen()
            rows = found.rows()
            wrong = sum(rows.get(key) != actual.get(key) for key in {*rows, *actual})
            table.add_row(way, f"{len(found.changes):,}", f"{wrong} of {len(actual)}")
        Console().print(f"{transactions:,} transactions, {len(actual)} rows in the end, {seconds:.1f} s")
        Console().print(table)


if __name__ == "__main__":
    typer.run(main)
