"""Random transactions on a table of the source database: inserts, updates, moves to another key, deletes, rollbacks."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg2

from lockstep.settings import Settings

TABLE = """
CREATE TABLE public.{name} (
  id BIGINT PRIMARY KEY, place TEXT, amount NUMERIC(12,3), any_number NUMERIC, at TIMESTAMPTZ, day DATE, note TEXT,
  document JSONB, tags TEXT[], ratio DOUBLE PRECISION, flag BOOLEAN, updated_at TIMESTAMPTZ);
ALTER TABLE public.{name} REPLICA IDENTITY FULL
"""
_NOTES = (None, "", "a'b\"c\\d", "日本語 ü", "line\nline", "null", "x" * 5_000)
_NUMBERS = (None, "NaN", "Infinity", "-Infinity", "0", "-0.00", "1e30", "123456789012345678901234567890.000000001")
_RATIOS = (None, float("nan"), float("inf"), float("-inf"), 0.1, -1e300)
_KEYS = 40


class Writer:
    """Writes transactions that are drawn from a seed, over one connection."""

    def __init__(self, settings: Settings, table: str, seed: int) -> None:
        self._dice = random.Random(seed)
        self._table = f"public.{table}"
        self._database = psycopg2.connect(settings.dsn(settings.package))

    def close(self) -> None:
        self._database.close()

    def write(self, transactions: int) -> None:
        """Write so many; one in six is rolled back."""
        for _ in range(transactions):
            with self._database.cursor() as cursor:
                for _ in range(self._dice.choice([1, 1, 1, 2, 5])):
                    self._change(cursor)
            if self._dice.random() < 1 / 6:
                self._database.rollback()
            else:
                self._database.commit()

    def _change(self, cursor: Any) -> None:
        dice, key = self._dice, self._dice.randrange(_KEYS)
        what = dice.choice(["put", "put", "put", "move", "delete", "undone"])
        if what == "undone":
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

    def _put(self, cursor: Any, key: int) -> None:
        row = {"id": key, **self._row()}
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
