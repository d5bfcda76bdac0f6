"""Live = batch = oracle, for every view, over ten minutes of a town with duplicates, late rows, disorder and poison."""

import pytest
from tests.shop.integration.views.layers import batch_and_live, by_batch, by_the_oracle

from lockstep import ledger
from lockstep.checkpoints import inspection
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, late_of
from lockstep.reconcile.run import reconcile


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_batch_says_what_the_oracle_says(spark, played, name):
    view = played.views[name]
    assert by_batch(spark, view) == by_the_oracle(name, view, played.sent)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_live_says_what_batch_says(spark, played, live, name):
    batch, found = batch_and_live(spark, played.views[name])
    assert found == batch
    dropped = [op.numRowsDroppedByWatermark for op in live[name].stateOperators]
    assert not any(dropped), "the engine must never decide what is late"


@pytest.mark.parametrize("name", sorted(name for name, view in VIEWS.items() if any(view.times.values())))
def test_late_rows_are_those_that_the_ledger_has_left_out(spark, played, name):
    view = played.views[name]
    late = spark.table(late_of(view)).where("NOT _counted")
    totals = ledger.latest(played.settings, gold_of(view)).totals
    assert late.count() == totals["ignored"] + totals["side_output"]


def test_reconciliation_finds_every_view_equal(spark, played, live):
    reports = reconcile(spark, played.settings, list(played.views.values()), "town")
    assert {r.view: (r.verdict, r.unexplained) for r in reports} == {
        view.name: ("equal", 0) for view in played.views.values()
    }
    assert all(r.windows for r in reports), [r.view for r in reports if not r.windows]


@pytest.mark.parametrize("name", ["sensor_alerts"])
def test_what_a_machine_keeps_can_be_counted_and_looked_into(spark, played, live, name):
    view = played.views[name]
    held = {store.variable: store for store in inspection.state_stores(spark, played.settings, view)}
    assert held.keys() == {"pending", "machine", "timers"}
    alerted = {f"{row['sensor_id']}/{row['metric']}" for row in spark.table(gold_of(view)).collect()}
    assert held["machine"].rows >= len(alerted)
    one = min(alerted)
    found = inspection.read_state(spark, played.settings, view, held["machine"].operator, one, 10)
    assert [one in str(row["key"]) for row in found if row["store"] == "machine"] == [True]
