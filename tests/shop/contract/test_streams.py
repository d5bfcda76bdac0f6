"""Every stream is complete: a contract has its bronze table, silver table, suite, dbt source and unit test."""

import re
from importlib import import_module
from typing import Any

import pytest
import yaml
from tests.shop.unit.contracts import test_contracts
from tests.support.paths import CHECKOUT

from lockstep import dictionary, lake
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.columns import CHANGE, PROVENANCE
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, bronze_of
from lockstep.definition.view import Output
from lockstep.new.sources import described
from lockstep.quality.suites import gated, load
from lockstep.settings import Settings

OURS = Settings()
DBT = CHECKOUT / "dbt" / "models"
every_contract = pytest.mark.parametrize("contract", CONTRACTS.values(), ids=list(CONTRACTS))
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))


def asked_for(table: str) -> set[str]:
    """The columns that a table's suite names."""
    named: set[str] = set()
    for expectation in load(OURS, table)["expectations"]:
        for key, value in expectation["kwargs"].items():
            if key.startswith("column"):
                named.update([value] if isinstance(value, str) else value)
    return named


def not_null(table: str) -> set[str]:
    """The columns that a table's suite wants in every row."""
    kind = "expect_column_values_to_not_be_null"
    return {e["kwargs"]["column"] for e in load(OURS, table)["expectations"] if e["type"] == kind}


def unique(table: str) -> set[tuple[str, ...]]:
    """What a table's suite wants to be unique."""
    found = set()
    for expectation in load(OURS, table)["expectations"]:
        if expectation["type"] == "expect_column_values_to_be_unique":
            found.add((expectation["kwargs"]["column"],))
        if expectation["type"] == "expect_compound_columns_to_be_unique":
            found.add(tuple(expectation["kwargs"]["column_list"]))
    return found


def dbt_sources(layer: str) -> dict[str, dict[str, Any]]:
    """The tables of dbt's source ``silver`` or ``gold``."""
    sources = yaml.safe_load((DBT / "sources.yml").read_text())["sources"]
    return {table["name"]: table for source in sources if source["name"] == layer for table in source["tables"]}


@every_contract
def test_a_contract_has_its_tables_in_every_layer(contract: Contract) -> None:
    settings, tables = Settings(), Tables.of(contract)
    assert (bronze_of(contract), tables.bronze) == (f"bronze.{contract.name}",) * 2
    assert f"silver.{contract.name}" in (tables.log, tables.current)
    assert tables.quarantine == f"quarantine.{contract.name}"
    for table in (tables.bronze, tables.log, tables.quarantine):
        assert lake.path(settings, table) == f"{settings.lake}/{table.replace('.', '/')}"


@every_contract
def test_a_contract_has_a_suite_over_its_own_columns(contract: Contract) -> None:
    extra = CHANGE if contract.kind == "changes" else ()
    assert asked_for(f"silver.{contract.name}") <= {*contract.columns, *PROVENANCE, *extra}


@every_contract
def test_a_suite_wants_what_the_contract_requires_and_where_a_row_came_from(contract: Contract) -> None:
    assert not_null(f"silver.{contract.name}") >= {*contract.required, *PROVENANCE}


@every_contract
def test_a_suite_wants_the_contracts_identity_to_be_unique(contract: Contract) -> None:
    assert contract.unique_id in unique(f"silver.{contract.name}")


@every_contract
def test_a_contract_has_a_described_dbt_source(contract: Contract) -> None:
    assert dbt_sources("silver")[contract.name].get("description")


def test_a_unit_test_looks_at_every_contract() -> None:
    _, looked_at = test_contracts.every_contract.args
    assert [*looked_at] == [*CONTRACTS.values()]
    tests = [test for name, test in vars(test_contracts).items() if name.startswith("test_")]
    assert any(test_contracts.every_contract.mark in getattr(test, "pytestmark", ()) for test in tests)


@every_view
def test_a_view_has_a_suite_over_its_own_columns(view: View) -> None:
    when = ("window_start", "window_end") if view.output is Output.WINDOWS else ("at",)
    assert asked_for(f"gold.{view.name}") <= {*view.columns, *when}
    assert not_null(f"gold.{view.name}") >= {*when, *view.key}
    assert view.key in unique(f"gold.{view.name}")


@every_view
def test_a_view_has_an_oracle_and_a_described_dbt_source(view: View) -> None:
    oracle = import_module(f"tests.shop.oracles.{view.name}")
    assert oracle.rows({stream: [] for stream in CONTRACTS}) == []
    assert dbt_sources("gold")[view.name].get("description")


@every_view
def test_a_view_has_a_test_that_runs_it(view: View) -> None:
    # The transform of a windowed view needs Spark, which unit tests do not start.
    folder = "integration" if view.output is Output.WINDOWS else "unit"
    files = [*(CHECKOUT / "tests/shop/unit/views").glob("test_*.py")]
    files += (CHECKOUT / f"tests/shop/{folder}/views").glob("test_*.py")
    assert any(f"from shop.views.{view.name} import VIEW" in file.read_text() for file in files)


def test_there_is_no_suite_or_source_without_its_contract_or_view() -> None:
    assert set(gated(OURS)) == {f"silver.{name}" for name in CONTRACTS} | {f"gold.{name}" for name in VIEWS}
    of_streams = [Tables.of(contract) for contract in CONTRACTS.values()]
    tables = [table for t in of_streams for table in (t.current, t.log, t.history) if table]
    assert {f"silver.{name}" for name in dbt_sources("silver")} == {*tables}
    assert set(dbt_sources("gold")) == set(VIEWS)


def test_every_mart_has_documented_columns_tests_and_a_unit_test() -> None:
    documented = yaml.safe_load((DBT / "marts" / "marts.yml").read_text())
    models = {model["name"]: model for model in documented["models"]}
    assert models.keys() == {file.stem for file in (DBT / "marts").glob("*.sql")}
    assert {test["model"] for test in documented["unit_tests"]} == models.keys()
    oracles = (CHECKOUT / "tests/integration/marts/test_marts.py").read_text()
    assert {name for name in models if f"def {name}(rows: Rows)" not in oracles} == set()
    for model in models.values():
        assert model["description"]
        assert model["data_tests"]
        assert model["config"]["meta"].keys() >= {"owner", "grain"}
        assert all(column["description"] for column in model["columns"])


def test_every_table_and_column_is_described() -> None:
    columns = [(f"{t.name}.{c.name}", c.description) for t in dictionary.tables() for c in t.columns]
    texts = [*((table.name, table.description) for table in dictionary.tables()), *columns]
    missing = [name for name, text in texts if not text]
    assert missing == [], "say what they mean, in the `description` or `column_descriptions` of the contract or view"


def test_dbts_sources_say_what_the_contracts_and_views_say() -> None:
    text = (DBT / "sources.yml").read_text()
    assert described(text) == text, "run `lockstep describe --write-dbt`"


def test_dbt_reads_only_silver_and_gold() -> None:
    # A view is defined once, in the project's views; dbt takes what it needs from gold.
    sql = "\n".join(file.read_text() for file in DBT.rglob("*.sql"))
    assert set(re.findall(r"source\('(\w+)'", sql)) <= {"silver", "gold"}
    assert not re.search(r"\b(from|join)\s+(bronze|live|serving|ops|quarantine)\.", sql)


def test_dbt_has_no_python_beside_its_models() -> None:
    assert list((CHECKOUT / "dbt").rglob("*.py")) == []
