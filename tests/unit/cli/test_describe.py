"""`lockstep describe` answers from the project's files: nothing has to run."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from lockstep.cli.describe import UnknownTable
from lockstep.cli.main import app


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["describe", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_table_is_shown_with_what_it_and_its_columns_mean() -> None:
    shown = run("silver.users").splitlines()
    assert shown[0] == "silver.users"
    assert shown[1].startswith("Customers of the shop.")
    assert shown[2:4] == ["key   user_id", "time  updated_at"]
    (name,) = (line.split() for line in shown if line.startswith("name "))
    assert name == ["name", "STRING", "token", "First", "and", "last", "name."]


def test_without_a_name_every_table_is_listed_by_layer_with_its_first_sentence() -> None:
    lines = run().splitlines()
    layers = [line for line in lines if not line.startswith(" ")]
    flow = ["bronze", "silver", "quarantine", "gold", "live", "late", "serving", "marts", "staging", "ops"]
    assert layers == flow
    (stock,) = (line for line in lines if line.startswith("  gold.product_stock "))
    assert stock.endswith("  The stock of each product now: the last count, less what was ordered since")


def test_programs_get_json() -> None:
    described: dict[str, Any] = json.loads(run("gold.page_views_per_minute", "--json"))
    assert (described["key"], described["time"]) == (["window_start", "page"], "window_start")
    assert described["columns"][2] == {
        "name": "page",
        "type": "STRING",
        "description": "The path of the page, such as /search or /product/22423.",
        "is_token": False,
    }
    assert len(json.loads(run("--json"))) > 100


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("page_views", "did you mean bronze.page_views, silver.page_views, quarantine.page_views"),
        ("gold.product_stok", "did you mean gold.product_stock"),
        ("zzz", "There is no table zzz: `lockstep describe` lists all."),
    ],
)
def test_a_table_that_does_not_exist_is_refused_with_names_that_are_near(name: str, near: str) -> None:
    with pytest.raises(UnknownTable) as refused:
        CliRunner().invoke(app, ["describe", name], catch_exceptions=False)
    assert near in str(refused.value)


def test_the_words_are_written_into_dbts_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "dbt" / "models" / "sources.yml"
    sources.parent.mkdir(parents=True)
    sources.write_text("sources:\n  - name: silver\n    tables: []\n  - name: gold\n    tables: []\n")
    (tmp_path / "pyproject.toml").write_text('[tool.lockstep]\npackage = "shop"\n')
    monkeypatch.setenv("LOCKSTEP_PROJECT", str(tmp_path))
    assert run("--write-dbt") == ""
    silver, gold = YAML(typ="safe").load(sources)["sources"]
    (users,) = (table for table in silver["tables"] if table["name"] == "users")
    assert {"name": "age", "description": "The age in years."} in users["columns"]
    assert "product_stock" in {table["name"] for table in gold["tables"]}
