"""The rows of a view in each layer and of its oracle, as bags that can be compared."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

from tests.shop.oracles.record import Record

from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of

# Columns that only the live layer has.
LIVE_ONLY = {"_revision", "_updated_at"}


def oracle_rows(name: str, view: View, sent: dict[str, list[Record]]) -> Counter[str]:
    """The rows that the oracle of the view ``name`` makes of the records that were sent."""
    rows = import_module(f"tests.shop.oracles.{name}").rows(sent)
    assert rows, "the scenario must give every view some rows"
    return canonical(rows, _columns_without_oracle(view))


def batch_rows(spark: Any, view: View) -> Counter[str]:
    """The rows of gold, with the columns that the oracle has too."""
    return canonical(_rows(spark, gold_of(view)), _columns_without_oracle(view))


def batch_and_live_rows(spark: Any, view: View) -> tuple[Counter[str], Counter[str]]:
    """The rows of gold and of the live table, with the columns that both have."""
    without = LIVE_ONLY | ({"at"} if getattr(view, "upserts", False) else set())
    batch, live = (canonical(_rows(spark, table), without) for table in (gold_of(view), live_of(view)))
    return batch, live


def _columns_without_oracle(view: View) -> set[str]:
    return {"at"} if "at" not in view.key else set()


def _rows(spark: Any, table: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.table(table).collect()]


def canonical(rows: list[dict[str, Any]], without: set[str]) -> Counter[str]:
    """The rows as a bag of texts, which ignores their order and the spelling of their values."""
    return Counter(str(sorted((k, _plain(v)) for k, v in row.items() if k not in without)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, dict):
        return sorted((k, _plain(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
