"""Live = batch = oracle, for every view, over ten minutes of a town with duplicates, late rows, disorder and poison."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest

from lockstep.batch.late import late_of
from lockstep.batch.rollup import gold_of
from lockstep.ingest import ledger
from lockstep.live.query import live_of
from lockstep.reconcile.run import reconcile
from lockstep.views import VIEWS

BESIDE = {"_revision", "_updated_at"}


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_batch_says_what_the_oracle_says(spark, played, name):
    view = played.views[name]
    expected = import_module(f"tests.oracles.{name}").rows(played.sent)
    assert expected, "the town must give every view something to say"
    found = [row.asDict(recursive=True) for row in spark.table(gold_of(view)).collect()]
    without = {"at"} if "at" not in view.key else set()
    assert canonical(found, without) == canonical(expected, without)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_live_says_what_batch_says(spark, played, live, name):
    view = played.views[name]
    found = [row.asDict(recursive=True) for row in spark.table(live_of(view)).collect()]
    batch = [row.asDict(recursive=True) for row in spark.table(gold_of(view)).collect()]
    without = BESIDE | ({"at"} if getattr(view, "upserts", False) else set())
    assert canonical(found, without) == canonical(batch, without)
    dropped = [op.numRowsDroppedByWatermark for op in live[name].stateOperators]
    assert not any(dropped), "the engine must never decide what is late"


@pytest.mark.parametrize("name", sorted(name for name, view in VIEWS.items() if any(view.times.values())))
def test_late_rows_are_those_that_the_ledger_has_left_out(spark, played, name):
    view = played.views[name]
    late = spark.table(late_of(view)).where("NOT _counted")
    totals = ledger.latest(played.settings, gold_of(view)).totals
    assert late.count() == totals["ignored"] + totals["side"]


def test_reconciliation_finds_every_view_equal(spark, played, live):
    reports = reconcile(spark, played.settings, list(played.views.values()), "town")
    assert {r.view: (r.verdict, r.unexplained) for r in reports} == {
        view.name: ("equal", 0) for view in played.views.values()
    }
    assert all(r.windows for r in reports), [r.view for r in reports if not r.windows]


def canonical(rows: list[dict[str, Any]], without: set[str]) -> Counter[str]:
    """The rows as a bag of texts, whatever their order and types' spelling."""
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
