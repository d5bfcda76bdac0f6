"""Live = batch = oracle, for every view, over ten minutes with duplicates, late rows, disorder and poison."""

from collections import Counter

import pytest
from tests.shop.integration.views.layers import batch_and_live_rows, batch_rows, oracle_rows
from tests.shop.oracles import late
from tests.support.tables import rows_of

from lockstep import ledger
from lockstep.checkpoints import inspection
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, late_of
from lockstep.reconcile.run import reconcile


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_batch_equals_the_oracle(spark, scenario, name):
    view = scenario.views[name]
    assert batch_rows(spark, scenario.settings, view) == oracle_rows(name, view, scenario.sent)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_live_equals_batch(spark, scenario, live, name):
    batch_layer, live_layer = batch_and_live_rows(spark, scenario.settings, scenario.views[name])
    assert live_layer == batch_layer
    dropped = [op.numRowsDroppedByWatermark for batch in live[name] for op in batch.stateOperators]
    assert dropped
    assert not any(dropped), "the engine must never decide what is late"


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_both_layers_computed_it_in_several_steps(scenario, live, name):
    view = scenario.views[name]
    assert len([e for e in ledger.entries(scenario.settings, gold_of(view)) if any(r.size for r in e.ranges)]) > 1
    # A windowed view takes what is there in one micro-batch: its topic is one source, with one watermark.
    assert not view.keeps_until or len([batch for batch in live[name] if batch.numInputRows]) > 1


@pytest.mark.parametrize("name", sorted(name for name, view in VIEWS.items() if any(view.times.values())))
def test_late_rows_are_those_of_the_oracle_and_the_ledger_counts_them(spark, scenario, name):
    view = scenario.views[name]
    rows = rows_of(spark, scenario.settings, late_of(view))
    late_rows = Counter(
        (scenario.stream_of(row["_topic"]), row["_partition"], row["_offset"], row["_counted"]) for row in rows
    )
    assert late_rows == Counter(late.rows(name, scenario.sent))
    assert late_rows, "the scenario must have a late row for every view"
    totals = ledger.latest(scenario.settings, gold_of(view)).totals
    assert sum(not counted for *_, counted in late_rows) == totals["ignored"] + totals["side_output"]


def test_reconciliation_finds_every_view_equal(spark, scenario, live):
    reports = [reconcile(spark, scenario.settings, view, "scenario") for view in scenario.views.values()]
    assert {r.view: (r.verdict, r.unexplained) for r in reports} == {
        view.name: ("equal", 0) for view in scenario.views.values()
    }
    assert all(r.windows for r in reports), [r.view for r in reports if not r.windows]


@pytest.mark.parametrize("name", ["sensor_alerts"])
def test_the_state_of_a_keyed_view_can_be_counted_and_inspected(spark, scenario, live, name):
    view = scenario.views[name]
    stores = {store.variable: store for store in inspection.state_stores(spark, scenario.settings, view)}
    assert stores.keys() == {"machines", "buckets", "waiting"}
    alerted = {f"{row['sensor_id']}/{row['metric']}" for row in rows_of(spark, scenario.settings, gold_of(view))}
    assert stores["machines"].rows >= len(alerted)
    key = min(alerted)
    entries = inspection.read_state(spark, scenario.settings, view, stores["machines"].operator, key, 10)
    assert [key in str(row["key"]) for row in entries if row["store"] == "machines"] == [True]
