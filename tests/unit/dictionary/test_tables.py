"""The dictionary says of every table which columns it has, what they mean, and which of them are personal."""

import re
from dataclasses import replace

import pytest
from tests.support.paths import CHECKOUT

from lockstep import dictionary
from lockstep.cli.describe import OPS
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.dictionary import Column, Table
from lockstep.dictionary.models import models


def table(name: str) -> Table:
    return next(found for found in dictionary.tables() if found.name == name)


def column(of: str, name: str) -> Column:
    return next(found for found in table(of).columns if found.name == name)


@pytest.mark.parametrize("described", OPS, ids=lambda one: one.name)
def test_every_column_of_the_platforms_own_tables_is_described_and_no_other(described):
    said = dictionary.texts(described.name)
    assert said.description
    assert said.columns.keys() == described.columns.keys()


def test_every_one_of_the_platforms_own_tables_is_among_them():
    sources = (file.read_text() for file in (CHECKOUT / "spark/lockstep").rglob("*.py"))
    made = {name for source in sources for name in re.findall(r'OpsTable\(\s*"(ops\.\w+)"', source)}
    assert {one.name for one in OPS} == made


def test_the_columns_that_the_platform_adds_are_described_in_every_layer():
    added = [(t.name, c) for t in dictionary.tables() for c in t.columns if c.name.startswith("_")]
    assert len(added) > 100
    assert [f"{name}.{column.name}" for name, column in added if not column.description] == []


def test_a_stream_has_its_tables_with_key_and_time():
    assert (table("silver.logins").key, table("silver.logins").time) == (("event_id",), "event_time")
    assert table("silver.users").description.startswith(CONTRACTS["users"].description)
    assert table("silver.users_changes").key == ("user_id", "_generation", "_commit_lsn", "_lsn")
    assert (table("bronze.users").key, table("quarantine.users").time) == (("partition", "offset"), "_arrival")


def test_a_column_of_a_view_means_what_it_means_in_its_stream_unless_the_view_says_something_else():
    of_stream = column("silver.logins", "country").description
    assert column("gold.failed_logins", "user_id").description == column("silver.logins", "user_id").description
    assert column("gold.failed_logins", "country").description not in {"", of_stream}


@pytest.mark.parametrize("of", ["silver.users", "gold.orders_with_customer", "serving.page_views_enriched"])
def test_personal_columns_are_marked_in_streams_and_in_the_views_over_them(of):
    assert column(of, "name").is_token
    assert not column(of, "age").is_token


def test_only_a_view_of_events_has_late_rows():
    names = {found.name for found in dictionary.tables()}
    assert "late.page_views_enriched" in names
    assert "late.product_stock" not in names


def test_what_nobody_has_said_is_missing(monkeypatch):
    monkeypatch.setitem(VIEWS, "quiet", replace(VIEWS["product_stock"], name="quiet", description=""))
    assert dictionary.texts("gold.quiet").description == ""
    assert dictionary.texts("gold.nowhere") is None


def test_the_models_of_dbt_are_described_by_their_own_files(tmp_path):
    folder = tmp_path / "dbt" / "models" / "marts"
    folder.mkdir(parents=True)
    (folder / "sums.sql").write_text("SELECT 1 AS n")
    (folder / "bare.sql").write_text("SELECT 1 AS n")
    columns = "{name: n, data_type: int, description: Pieces.}"
    (folder / "marts.yml").write_text(f"models: [{{name: sums, description: 'By\n  day.', columns: [{columns}]}}]")
    (folder / "empty.yml").write_text("")
    bare, sums = models(tmp_path)
    assert bare == Table("marts.bare", "", ())
    assert sums == Table("marts.sums", "By day.", (Column("n", "INT", "Pieces."),))
