"""The gates check real rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep import lake
from lockstep.batch.rollup import roll_up
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.definition.tables import gold_of
from lockstep.deploy.followed import changed_suites
from lockstep.ingest.bronze import ingest
from lockstep.quality import suites
from lockstep.quality.distributions import against_history
from lockstep.quality.gate import GateFailed, run_gates
from lockstep.quality.outcomes import GateVerdict, latest
from lockstep.quality.readiness import is_open
from lockstep.refine.silver import refine
from lockstep.settings import Settings

PAGES = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "page", "value_set": ["/", "/cart"]}}
UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "event_id"}}
Expect = Callable[..., None]


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """The settings of a project of the test's own, which has no suites yet."""
    return settings.model_copy(update={"project": tmp_path})


@pytest.fixture
def expect(settings: Settings) -> Expect:
    """Write the suite of a table."""

    def write(table: str, *expectations: dict[str, Any]) -> None:
        file = suites.suite_file(settings, table)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"name": table, "expectations": expectations}))

    return write


@pytest.fixture
def arrive(spark: Any, settings: Settings, stream: Contract, shop: Any) -> Callable[..., str]:
    """Bring page views to silver, each as (event_id, second, page); the name of the table."""

    def bring(*views: tuple[str, float, str]) -> str:
        for event_id, second, page in views:
            shop.view(event_id, second, page=page)
        shop.flush()
        assert ingest(spark, settings, stream, "test")
        assert refine(spark, settings, stream, "test")
        return f"silver.{stream.name}"

    return bring


def test_the_plan_has_a_changed_suite_until_its_table_was_checked_by_it(spark, settings, arrive, expect) -> None:
    table = arrive(("e1", 0, "/"))
    expect(table, PAGES)
    run_gates(spark, settings, [table], "run")
    assert [*changed_suites(settings)] == []
    expect(table, PAGES, UNIQUE)
    assert [*changed_suites(settings)] == [f"suite {table}"]
    arrive(("e2", 1, "/"))
    run_gates(spark, settings, [table], "run")
    assert [*changed_suites(settings)] == []


def test_rows_that_pass_are_not_checked_again(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect
) -> None:
    table = arrive(("a", 1, "/"), ("b", 2, "/cart"))
    expect(table, PAGES, UNIQUE)
    [outcome] = run_gates(spark, settings, [table], "run-1")
    assert (outcome.success, len(outcome.results), outcome.rows, outcome.failed) == (True, 2, 2, ())
    assert run_gates(spark, settings, [table], "run-2") == []
    arrive(("c", 3, "/"))
    [later] = run_gates(spark, settings, [table], "run-3")
    assert later.rows == 1


@pytest.mark.slow
def test_a_shift_against_the_rows_before_is_recorded_and_the_same_shares_are_not(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def views(letter: str, *pages: str) -> str:
        return arrive(*((f"{letter}{n}", n % 50, pages[n % len(pages)]) for n in range(100)))

    table = views("a", "/", "/", "/cart", "/search")
    expect(table, against_history("page"), UNIQUE)
    [first] = run_gates(spark, settings, [table], "run-1")
    views("b", "/", "/cart", "/", "/search")
    [same] = run_gates(spark, settings, [table], "run-2")
    assert (first.warned, same.warned) == ((), ())

    views("c", "/cart")
    # As Spark compares a slice that is not small.
    monkeypatch.setattr(lake, "is_small", lambda _: False)
    [shifted] = run_gates(spark, settings, [table], "run-3")
    assert shifted.success
    assert "'/cart' is 100% of the rows, and was 25% before" in shifted.warned[0]
    [known] = latest(settings).distributions[table].values()
    assert dict(map(tuple, known)) == {"/": 100, "/cart": 150, "/search": 50}
    recorded = spark.sql(f"SELECT warned FROM ops.quality WHERE `table` = '{table}' ORDER BY checked_at").collect()
    assert [len(row["warned"]) for row in recorded] == [0, 0, 1]


def test_a_wrong_row_shuts_the_gate_until_the_suite_or_the_row_changes(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect
) -> None:
    table = arrive(("a", 1, "/"), ("b", 2, "/wrong"), ("c", 3, "/worse"))
    expect(table, PAGES, UNIQUE)
    with pytest.raises(GateFailed) as refusal:
        run_gates(spark, settings, [table], "run-1")
    message = str(refusal.value)
    assert table in message
    assert "expect_column_values_to_be_in_set(column='page'" in message
    assert "2 of 3 rows do not hold" in message
    assert "/wrong" in message
    assert not is_open(settings, table)
    verdict = latest(settings).verdicts[table]
    assert verdict == GateVerdict(success=False, checks=2, failed=1, rows=3)
    assert str(verdict) == "FAILED 1 of 2 checks on 3 rows"
    assert latest(settings).held_back[table] == -1

    arrive(("d", 4, "/"))
    with pytest.raises(GateFailed, match="2 of 4 rows"):
        run_gates(spark, settings, [table], "run-2")

    expect(table, UNIQUE)
    [outcome] = run_gates(spark, settings, [table], "run-3")
    assert outcome.rows == 4
    assert is_open(settings, table)


def test_a_shut_gate_does_not_stop_the_gates_of_other_tables(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect, view: View
) -> None:
    silver = arrive(("a", 1, "/wrong"))
    assert roll_up(spark, settings, view, "test")
    expect(silver, PAGES)
    expect(gold_of(view), {"type": "expect_column_values_to_be_between", "kwargs": {"column": "views", "min_value": 1}})
    with pytest.raises(GateFailed, match=silver):
        run_gates(spark, settings, [silver, gold_of(view)], "run-1")
    assert is_open(settings, gold_of(view))
    assert not is_open(settings, silver)


def test_every_outcome_is_a_row_of_ops_quality(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect
) -> None:
    table = arrive(("a", 1, "/wrong"))
    expect(table, PAGES)
    with pytest.raises(GateFailed):
        run_gates(spark, settings, [table], "run-7")
    [row] = spark.table("ops.quality").where(f"`table` = '{table}'").collect()
    assert (row["suite"], row["success"], row["checks"], row["rows"], row["run_id"]) == (table, False, 1, 1, "run-7")
    assert len(row["failed"]) == 1
    assert "_offset" in row["slice"]


def test_a_gate_on_gold_checks_only_the_windows_that_changed(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect, view: View
) -> None:
    arrive(("a", 1, "/"), ("b", 2, "/"))
    table = gold_of(view)
    assert roll_up(spark, settings, view, "test")
    expect(table, {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "views", "value_set": [2]}})
    [first] = run_gates(spark, settings, [table], "run-1")
    assert first.success
    assert "2026-11-10 10:00:00" in first.slice

    arrive(("c", 601, "/"))
    assert roll_up(spark, settings, view, "test")
    with pytest.raises(GateFailed, match=r"1 of 1 rows do not hold, such as \[1\]"):
        run_gates(spark, settings, [table], "run-2")


def test_an_expectation_that_raises_shuts_the_gate(
    spark: Any, settings: Settings, arrive: Callable[..., str], expect: Expect
) -> None:
    table = arrive(("a", 1, "/"))
    expect(table, {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "no_such_column"}})
    with pytest.raises(GateFailed, match="could not be checked"):
        run_gates(spark, settings, [table], "run-1")
