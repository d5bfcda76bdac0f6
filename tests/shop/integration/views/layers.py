"""What each layer says of a view, and what its oracle says, as bags of rows that can be compared."""

from collections import Counter
from importlib import import_module
from typing import Any

from tests.shop.oracles.record import Record

from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of
from lockstep.testing import comparable

# Only the live layer has these.
BESIDE = {"_revision", "_updated_at"}


def by_the_oracle(name: str, view: View, sent: dict[str, list[Record]]) -> Counter[str]:
    """The rows that the oracle of the view ``name`` makes of what was sent."""
    rows = import_module(f"tests.shop.oracles.{name}").rows(sent)
    assert rows, "the town must give every view something to say"
    return comparable(rows, _beside_the_key(view))


def by_batch(spark: Any, view: View) -> Counter[str]:
    """Gold, as the oracle would say it."""
    return comparable(_rows(spark, gold_of(view)), _beside_the_key(view))


def batch_and_live(spark: Any, view: View) -> tuple[Counter[str], Counter[str]]:
    """Gold and the live table, in what both of them say."""
    without = BESIDE | ({"at"} if getattr(view, "upserts", False) else set())
    batch, live = (comparable(_rows(spark, table), without) for table in (gold_of(view), live_of(view)))
    return batch, live


def _beside_the_key(view: View) -> set[str]:
    return {"at"} if "at" not in view.key else set()


def _rows(spark: Any, table: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.table(table).collect()]
