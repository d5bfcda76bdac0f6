"""Random transactions on a table of the source database: inserts, updates, moves to another key, deletes, rollbacks.

And changes of its columns: columns that the contract does not name are added, renamed and dropped, and get a wider type. The
contract's own column ``size`` gets a wider type too.
"""

import json
import random
import string
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg2

from lockstep.settings import Settings

TABLE = """
CREATE TABLE public.{name} (
  id BIGINT PRIMARY KEY, place TEXT, amount NUMERIC(12,3), any_number NUMERIC, at TIMESTAMPTZ, day DATE, note TEXT,
  document JSONB, tags TEXT[], ratio DOUBLE PRECISION, flag BOOLEAN, size SMALLINT, updated_at TIMESTAMPTZ);
ALTER TABLE public.{name} REPLICA IDENTITY FULL
"""
# PostgreSQL can pack the first of the long texts; the other is kept apart, and its log has it only where it is changed.
LONG = "".join(random.Random(0).choices(string.ascii_letters, k=5_000))
_NOTES = (None, "", "a'b\"c\\d", "日本語 ü", "line\nline", "null", "x" * 5_000, LONG)
_NUMBERS = (None, "NaN", "Infinity", "-Infinity", "0", "-0.00", "1e30", "123456789012345678901234567890.000000001")
_RATIOS = (None, float("nan"), float("inf"), float("-inf"), 0.1, -1e300)
_KEYS = 40
# Values by the type of a column. The values of a type are values of those after it in its line, too.
_WIDER = (
    {
        "smallint": (None, -(2**15)),
        "integer": (None, 2**31 - 1),
        "bigint": (-(2**63), 2**63 - 1),
        "numeric": ("1e30", "NaN"),
    },
    {"character varying(5)": (None, "short"), "character varying(40)": ("longer than that",), "text": ("x" * 100, "")},
    {"numeric(5,2)": (None, "999.99"), "numeric(12,2)": ("1234567890.12",)},
    {"real": (None, 0.5), "double precision": (0.1, float("inf"))},
)
_VALUES = {kind: values for kinds in _WIDER for kind, values in kinds.items()}
_NEXT = {kind: wider for kinds in _WIDER for kind, wider in zip(kinds, [*kinds][1:], strict=False)}
# The contract's column, and the widest type that the contract's type holds.
_OWN, _OWN_WIDEST = "size", "bigint"
_ADDED = [f"added_{number}" for number in range(6)]
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s::regclass AND attname = ANY(%s) AND NOT attisdropped ORDER BY 1
"""


class Writer:
    """Writes transactions that are drawn from a seed, over one connection.

    Args:
        alters: how many of the transactions change the table's columns, at random.
        database: of the source; the project's own by default.
    """

    def __init__(self, settings: Settings, table: str, seed: int, alters: float = 0, database: str = "") -> None:
        self._dice = random.Random(seed)
        self._table = f"public.{table}"
        self._alters = alters
        self._database = psycopg2.connect(settings.dsn(database or settings.package))
        self._kinds: dict[str, str] = {}

    def close(self) -> None:
        self._database.close()

    def write(self, transactions: int) -> None:
        """Write so many; one in six is rolled back."""
        for _ in range(transactions):
            with self._database.cursor() as cursor:
                self._look(cursor)
                for _ in range(self._dice.choice([1, 1, 1, 2, 5])):
                    self._change(cursor)
            if self._dice.random() < 1 / 6:
                self._database.rollback()
            else:
                self._database.commit()

    def _look(self, cursor: Any) -> None:
        cursor.execute(_COLUMNS, (self._table, [_OWN, *_ADDED]))
        self._kinds = dict(cursor.fetchall())

    def _change(self, cursor: Any) -> None:
        dice, key = self._dice, self._dice.randrange(_KEYS)
        what = dice.choice(["put", "put", "put", "move", "delete", "undone"])
        if self._alters and dice.random() < self._alters:
            self._alter(cursor)
        elif what == "undone":
            cursor.execute("SAVEPOINT before")
            self._put(cursor, key)
            cursor.execute("ROLLBACK TO SAVEPOINT before")
        elif what == "delete":
            cursor.execute(f"DELETE FROM {self._table} WHERE id = %s", (key,))
        elif what == "move":
            free = f"SELECT n FROM generate_series(0, {_KEYS}) n WHERE n NOT IN (SELECT id FROM {self._table}) LIMIT 1"
            cursor.execute(f"UPDATE {self._table} SET id = ({free}) WHERE id = %s", (key,))
        else:
            self._put(cursor, key)

    def _alter(self, cursor: Any) -> None:
        dice, added = self._dice, sorted(self._kinds.keys() & {*_ADDED})
        free = [name for name in _ADDED if name not in added]
        wider = {name: _NEXT[kind] for name, kind in self._kinds.items() if kind in _NEXT}
        if self._kinds[_OWN] == _OWN_WIDEST:
            del wider[_OWN]
        statements = []
        if free:
            kind = dice.choice([*_VALUES])
            default = dice.choice(["", f" NOT NULL DEFAULT '{_VALUES[kind][-1]}'"])
            statements += [f"ADD COLUMN {dice.choice(free)} {kind}{default}"]
        if wider:
            name = dice.choice(sorted(wider))
            statements += [f"ALTER COLUMN {name} TYPE {wider[name]}"]
        if added:
            statements += [f"DROP COLUMN {dice.choice(added)}"]
        if added and free:
            statements += [f"RENAME COLUMN {dice.choice(added)} TO {dice.choice(free)}"]
        cursor.execute(f"ALTER TABLE {self._table} {dice.choice(statements)}")
        self._look(cursor)

    def _put(self, cursor: Any, key: int) -> None:
        # A value that is not named gets the column's default: an added column may be NOT NULL.
        others = {name: self._dice.choice(_VALUES[kind]) for name, kind in self._kinds.items()}
        row = {"id": key, **self._row(), **{name: value for name, value in others.items() if value is not None}}
        names, places = ", ".join(row), ", ".join(["%s"] * len(row))
        changed = ", ".join(f"{name} = EXCLUDED.{name}" for name in row)
        cursor.execute(
            f"INSERT INTO {self._table} ({names}) VALUES ({places}) ON CONFLICT (id) DO UPDATE SET {changed}",
            [*row.values()],
        )

    def _row(self) -> Mapping[str, Any]:
        dice, now = self._dice, datetime.now(UTC)
        document = {"n": dice.random(), "list": [1, None, "ä"], "deep": {"x": dice.choice([True, None])}}
        return {
            "place": dice.choice(["here", "there", None]),
            "amount": dice.choice([None, Decimal(dice.randrange(-(10**9), 10**9)) / 1000]),
            "any_number": dice.choice(_NUMBERS),
            "at": dice.choice(
                [None, now, datetime(1970, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, 23, 59, 59, 999999, UTC)]
            ),
            "day": dice.choice([None, now.date()]),
            "note": dice.choice(_NOTES),
            "document": dice.choice([None, json.dumps(document)]),
            "tags": dice.choice([None, [], ["a", None, "c d"]]),
            "ratio": dice.choice(_RATIOS),
            "flag": dice.choice([None, True, False]),
            # Now and then the row's own time stays behind, or goes back.
            "updated_at": dice.choice([now, now, now, now - timedelta(seconds=dice.randrange(100)), None]),
        }
