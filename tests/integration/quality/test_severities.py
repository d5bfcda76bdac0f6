"""What each severity does to real rows: a warning is recorded, a bad row goes aside, a failure keeps readers where they were."""

import json
from dataclasses import replace
from importlib import import_module

import pytest
from tests.support.slow import slow

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.contracts.rules import rule_of
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of, serving_of
from lockstep.ingest.bronze import ingest
from lockstep.lake import writes
from lockstep.quality import gate, suites
from lockstep.quality.gate import GateFailed, run_gates
from lockstep.quality.outcomes import latest
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from lockstep.serving.merged import publish

PAGES = {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "page", "regex": "^/"}}
ASIDE = PAGES | {"meta": {"quarantine": True}}
DEVICES = {
    "type": "expect_column_values_to_be_in_set",
    "kwargs": {"column": "device", "value_set": ["mobile"]},
    "severity": "warning",
}


@pytest.fixture
def settings(settings, tmp_path):
    """The settings of a project of the test's own, which has no suites yet."""
    return settings.model_copy(update={"project": tmp_path})


@pytest.fixture
def expect(settings):
    """Write the suite of a table."""

    def write(table, *expectations):
        file = suites.suite_file(settings, table)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"name": table, "expectations": expectations}))

    return write


@pytest.fixture
def ruled(stream, monkeypatch):
    """The stream, whose contract has the rule of its suite."""
    contract = replace(stream, rules=(rule_of(ASIDE),))
    monkeypatch.setitem(CONTRACTS, stream.name, contract)
    return contract


def to_silver(spark, settings, stream):
    assert ingest(spark, settings, stream, "test")
    return refine(spark, settings, stream, "test")


@pytest.mark.parametrize("small_rows", [20_000, slow(0)], ids=["without Spark", "in Spark"])
def test_a_bad_row_goes_aside_alone_and_both_layers_are_equal(
    spark, settings, expect, ruled, view, shop, rows, monkeypatch, small_rows
):
    monkeypatch.setattr(writes, "SMALL_ROWS", small_rows)
    expect(f"silver.{ruled.name}", ASIDE)
    for n, (second, page) in enumerate([(15, "/"), (20, "ftp:bad"), (45, "/"), (70, "/cart"), (75, "also bad")]):
        shop.view(f"e{n}", second, page=page)
    shop.heartbeat(600)
    shop.flush()
    entry = to_silver(spark, settings, ruled)
    assert entry.counts["silver"] == 3
    assert entry.counts["quarantined"] == 2
    [outcome] = run_gates(spark, settings, [f"silver.{ruled.name}"], "run")
    assert outcome.success
    aside = rows(f"quarantine.{ruled.name}")
    assert {row["_reason"] for row in aside} == {"expect_column_values_to_match_regex(column='page', regex='^/')"}
    assert {json.loads(row["_value"])["page"] for row in aside} == {"ftp:bad", "also bad"}
    roll_up(spark, settings, view, "test")
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    answer = {("/", 2), ("/cart", 1)}
    assert {(row["page"], row["views"]) for row in rows(gold_of(view))} == answer
    assert {(row["page"], row["views"]) for row in rows(live_of(view))} == answer
    assert reconcile(spark, settings, view, "test").verdict == "equal"


def test_a_warning_is_recorded_and_the_gate_stays_open(spark, settings, expect, stream, shop):
    table = f"silver.{stream.name}"
    expect(table, DEVICES, PAGES)
    shop.view("a", 1, device="toaster")
    shop.view("b", 2, device="mobile")
    shop.flush()
    to_silver(spark, settings, stream)
    [outcome] = run_gates(spark, settings, [table], "run-1")
    assert outcome.success
    assert len(outcome.warned) == 1
    assert "1 of 2 rows do not hold, such as ['toaster']" in outcome.warned[0]
    assert latest(settings).positions[table] == outcome.version, "the rows are not checked again"
    [row] = spark.table("ops.quality").where(f"`table` = '{table}'").collect()
    assert row["warned"] == list(outcome.warned)
    checks = {check["severity"]: check for check in row["results"]}
    assert (checks["warn"]["unexpected"], checks["warn"]["elements"], checks["warn"]["success"]) == (1, 2, False)
    assert (checks["fail"]["unexpected"], checks["fail"]["elements"], checks["fail"]["columns"]) == (0, 2, ["page"])


def test_a_row_from_before_the_rule_shuts_the_gate_and_says_how_it_goes_aside(spark, settings, expect, stream, shop):
    table = f"silver.{stream.name}"
    shop.view("a", 1, page="bad")
    shop.flush()
    to_silver(spark, settings, stream)
    expect(table, ASIDE)
    with pytest.raises(GateFailed, match="came before this rule, and a replay of silver puts them aside"):
        run_gates(spark, settings, [table], "run-1")


def test_readers_see_no_row_before_its_gate_and_none_that_has_failed_it(
    spark, settings, expect, stream, view, shop, rows, monkeypatch
):
    few = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "views", "max_value": 2}}
    expect(gold_of(view), few)

    def bring(*views):
        for event_id, second in views:
            shop.view(event_id, second)
        shop.heartbeat(max(second for _, second in views) + 300)
        shop.flush()
        to_silver(spark, settings, stream)
        assert roll_up(spark, settings, view, "test")

    def die(_):
        raise SystemExit("killed")

    def answer():
        publish(spark, settings, [view])
        return sorted(row["views"] for row in rows(serving_of(view)))

    bring(("a", 15), ("b", 20))
    publish(spark, settings, [view])
    assert not spark.catalog.tableExists(serving_of(view)), "no gate has passed anything"
    run_gates(spark, settings, [gold_of(view)], "run-1")
    assert answer() == [2]
    bring(("c", 1000), ("d", 1001), ("e", 1002))
    assert sorted(row["views"] for row in rows(serving_of(view))) == [2], "written, and not audited"
    assert answer() == [2], "another task publishes before the gate has run"
    with pytest.raises(GateFailed, match="1 of 1 rows"):
        run_gates(spark, settings, [gold_of(view)], "run-2")
    assert answer() == [2], "the last good version"
    bring(("f", 2000))
    assert answer() == [2]
    expect(gold_of(view), few | {"kwargs": {"column": "views", "max_value": 3}})
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(gate, "failpoint", die)
        run_gates(spark, settings, [gold_of(view)], "run-3")
    assert sorted(row["views"] for row in rows(serving_of(view))) == [2], "killed between its verdict and the switch"
    assert run_gates(spark, settings, [gold_of(view)], "run-4") == [], "the verdict was written"
    assert answer() == [1, 2, 3]


def test_a_view_with_a_new_column_is_served_as_it_was_until_its_rows_have_passed(
    spark, settings, expect, stream, view, shop, rows, monkeypatch, caplog
):
    few = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "views", "max_value": 1}}
    expect(gold_of(view), few)

    def bring(event_id, second, definition):
        shop.view(event_id, second)
        shop.heartbeat(second + 300)
        shop.flush()
        to_silver(spark, settings, stream)
        assert roll_up(spark, settings, definition, "test")

    bring("a", 15, view)
    run_gates(spark, settings, [gold_of(view)], "run-1")
    publish(spark, settings, [view])
    bring("b", 1000, view)
    wider = replace(
        view, columns={**view.columns, "twice": "BIGINT"}, measures={**view.measures, "twice": "count(*) * 2"}
    )
    for module in (import_module("lockstep.ledger.entries"), import_module("lockstep.batch.rollup")):
        monkeypatch.setattr(module, "code_version", lambda: "2")
    monkeypatch.setitem(VIEWS, view.name, wider)
    bring("c", 2000, wider)
    publish(spark, settings, [wider])
    assert f"{serving_of(view)} stays as it was until the new rows" in caplog.text
    assert [row["views"] for row in rows(serving_of(view))] == [1]
    run_gates(spark, settings, [gold_of(view)], "run-2")
    publish(spark, settings, [wider])
    assert sorted(str(row["twice"]) for row in rows(serving_of(view))) == ["2", "None", "None"]


def test_an_added_rule_reaches_a_live_query_from_its_checkpoint(spark, settings, stream, view, shop, rows, monkeypatch):
    def run_live():
        with connect(settings, "live") as own:
            running = service.start(own, settings, view)
            running.processAllAvailable()
            running.stop()
        return sorted((row["page"], row["views"]) for row in rows(live_of(view)))

    def send(*views):
        for event_id, second, page in views:
            shop.view(event_id, second, page=page)
        shop.heartbeat(max(second for _, second, _ in views) + 300)
        shop.flush()

    send(("a", 15, "/"), ("b", 20, "bad"))
    assert run_live() == [("/", 1), ("bad", 1)]
    monkeypatch.setitem(CONTRACTS, stream.name, replace(stream, rules=(rule_of(ASIDE),)))
    send(("c", 1000, "/cart"), ("d", 1001, "worse"))
    assert run_live() == [("/", 1), ("/cart", 1), ("bad", 1)], "it went on, and kept what it had"
    to_silver(spark, settings, CONTRACTS[stream.name])
    assert {row["page"] for row in rows(f"silver.{stream.name}")} == {"/", "/cart"}, "batch parses all with the rule"
