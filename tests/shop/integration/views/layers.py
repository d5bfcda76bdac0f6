"""The rows of a view in each layer and of its oracle, as bags that can be compared."""

from collections import Counter
from importlib import import_module
from typing import Any

from tests.shop.oracles.record import Record
from tests.support.tables import rows_of

from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of
from lockstep.settings import Settings
from lockstep.testing import comparable

# Columns that only the live layer has.
LIVE_ONLY = {"_revision", "_updated_at"}


def oracle_rows(name: str, view: View, sent: dict[str, list[Record]]) -> Counter[str]:
    """The rows that the oracle of the view ``name`` makes of the records that were sent."""
    rows = import_module(f"tests.shop.oracles.{name}").rows(sent)
    assert rows, "the scenario must give every view some rows"
    return comparable(rows, columns_without_oracle(view))


def batch_rows(spark: Any, settings: Settings, view: View) -> Counter[str]:
    """The rows of gold, with the columns that the oracle has too."""
    return comparable(_rows(spark, settings, gold_of(view)), columns_without_oracle(view))


def batch_and_live_rows(spark: Any, settings: Settings, view: View) -> tuple[Counter[str], Counter[str]]:
    """The rows of gold and of the live table, with the columns that both have."""
    without = LIVE_ONLY | ({"at"} if getattr(view, "upserts", False) else set())
    batch, live = (comparable(_rows(spark, settings, table), without) for table in (gold_of(view), live_of(view)))
    return batch, live


def columns_without_oracle(view: View) -> set[str]:
    """The columns of gold that the oracle of a view does not have."""
    return {"at"} if "at" not in view.key else set()


def _rows(spark: Any, settings: Settings, table: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in rows_of(spark, settings, table)]
