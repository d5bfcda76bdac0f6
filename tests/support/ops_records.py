"""The records of the ``ops.*`` tables in memory, for tests that have no PostgreSQL."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.control import records
from lockstep.control.records import Record


class OpsRecords:
    """Takes the place of :mod:`lockstep.control.records`. Each record is written one second after the one before it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._tables: dict[str, dict[str, Record]] = defaultdict(dict)
        patch.setattr(records, "of_each_key", lambda _settings, table: self._in_order(table))
        patch.setattr(records, "of_key", lambda _settings, table, key: self._tables[table].get(key))

    def write(self, table: str, fields: Mapping[str, Any], key: str = "") -> None:
        """Write a record."""
        seq = len(self._in_order(table)) and self._in_order(table)[-1].seq
        self._tables[table][key] = Record(key, seq + 1, fields, datetime.fromtimestamp(seq + 1, UTC))

    def _in_order(self, table: str) -> list[Record]:
        return sorted(self._tables[table].values(), key=lambda record: record.seq)
