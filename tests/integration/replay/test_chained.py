"""A view that reads another's results is equal live and batch: as the first view goes on, is replayed, and is undone."""

import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark import cloudpickle
from tests.support.committed import until_no_transaction_is_open
from tests.support.live import run_live
from tests.support.results import results_of
from tests.support.shop import START

from lockstep import ledger
from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse
from lockstep.serving.publish_results import publish_all, unpublished_since

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def in_total(state, event):
    """The state is the views of a page by minute."""
    minutes = state or {}
    if event.data["_deleted"]:
        minutes.pop(event.data["window_start"], None)
    else:
        minutes[event.data["window_start"]] = event.data["views"]
    return minutes, [{"page": event.data["page"], "minutes": len(minutes), "views": sum(minutes.values())}]


WITHOUT_FRONT_PAGE = "page <> '/'"


@pytest.fixture
def results(settings, view, monkeypatch):
    """The stream of the results of the test's view, which has page views by minute."""
    name = f"page_minutes_{view.name[-8:]}"
    contract = results_of(view, name, event_time="window_start")
    assert contract.problems == []
    monkeypatch.setitem(CONTRACTS, name, contract)
    ensure_topics(settings, {name: contract})
    return contract


@pytest.fixture
def second(results, monkeypatch):
    """A view of these results."""
    view = Keyed(
        name=f"in_total_{results.name[-8:]}",
        columns={"page": "STRING", "minutes": "BIGINT", "views": "BIGINT"},
        key=("page",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(results.name, "page", ("page", "window_start", "views"), time="window_end"),),
        process=in_total,
    )
    monkeypatch.setitem(VIEWS, view.name, view)
    return view


@pytest.fixture
def follow(spark, settings, results, second):
    """Publishes the results, and brings the second view up to them in both layers; how many changes there were."""

    def follow():
        sent = publish_all(settings, [results]).get(results.name, 0)
        until_no_transaction_is_open(settings, results.topic)
        ingest(spark, settings, results, "run")
        refine(spark, settings, results, "run")
        roll_up(spark, settings, second, "run")
        run_live(settings, second)
        return sent

    return follow


@pytest.fixture
def answer(spark, settings, second, rows):
    """By page, its minutes and views; the same in both layers, as reconciliation finds too."""

    def ask():
        gold, live = ({r["page"]: (r["minutes"], r["views"]) for r in rows(of(second))} for of in (gold_of, live_of))
        assert gold == live
        report = reconcile(spark, settings, second, "run", again_since=START)
        assert (report.verdict, report.unexplained) == ("equal", 0)
        return gold

    return ask


def test_a_chained_view_agrees_as_its_first_view_goes_on_is_replayed_and_is_undone(
    spark, settings, view, shop, batch, asked, redone, results, follow, answer
):
    for n in range(12):
        shop.view(f"e{n}", 20 * n, page="/" if n % 3 else "/cart")
    shop.heartbeat(130)
    shop.flush()
    batch()
    assert follow() == 4, "two of four minutes are final, and each has two pages"
    assert answer() == {"/": (2, 4), "/cart": (2, 2)}
    assert follow() == 0

    shop.view("later", 3600 + 30, page="/")
    shop.heartbeat(7200)
    shop.flush()
    batch()
    assert unpublished_since(settings, [results]).keys() == {results.name}
    assert follow() == 5
    assert unpublished_since(settings, [results]) == {}
    assert answer() == {"/": (5, 9), "/cart": (4, 4)}

    VIEWS[view.name] = replace(view, where=WITHOUT_FRONT_PAGE)
    replay = redone(asked())
    assert follow() == 4, "the results that are gone are deleted"
    assert answer() == {"/": (1, 1), "/cart": (4, 4)}

    run.undo(spark, settings, replay.id, "run", "tester")
    assert follow() == 4
    assert answer() == {"/": (5, 9), "/cart": (4, 4)}

    totals = ledger.latest(settings, Tables.of(results).log).totals
    assert (totals["silver"], totals["duplicates"], totals["quarantined"]) == (17, 0, 0), "each change was sent once"


@pytest.mark.slow
def test_a_replay_of_the_results_themselves_gives_the_same(settings, shop, batch, redone, results, follow, answer):
    for n in range(6):
        shop.view(f"e{n}", 20 * n, page="/" if n % 2 else "/cart")
    shop.heartbeat(600)
    shop.flush()
    batch()
    follow()
    before = answer()
    assert before == {"/": (2, 3), "/cart": (2, 3)}
    ends = {r.partition: r.end for r in ledger.latest(settings, Tables.of(results).bronze).ranges}
    offsets = {str(partition): [0, end] for partition, end in ends.items() if end}
    redone(parse({"reason": "all again", "topics": [results.name], "layers": ["silver", "gold"], "offsets": offsets}))
    assert follow() == 0
    assert answer() == before
