"""The data docs in Airflow are for whoever has logged in: a plugin's routes are open unless they ask."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from fastapi.testclient import TestClient
from tests.support.paths import CHECKOUT

from lockstep import settings as configuration
from lockstep.settings import Settings


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The plugin of an installation that has the page of one table, and dbt's pages."""
    page = tmp_path / "data_docs" / "tables" / "silver.orders.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>orders")
    (tmp_path / "dbt_docs").mkdir()
    (tmp_path / "dbt_docs" / "index.html").write_text("<p>models")
    (tmp_path / "dbt_docs" / "manifest.json").write_text("{}")
    (tmp_path / "data_docs" / "history").mkdir()
    (tmp_path / "data_docs" / "history" / "silver.orders.json").write_text("{}")
    monkeypatch.setattr(configuration, "load", lambda: Settings(home=tmp_path))
    file = CHECKOUT / "infra" / "airflow" / "plugins" / "data_docs.py"
    spec = importlib.util.spec_from_file_location("data_docs_plugin", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def logged_in(plugin: ModuleType) -> TestClient:
    from airflow.api_fastapi.core_api.security import get_user

    plugin.app.dependency_overrides[get_user] = lambda: "somebody"
    return TestClient(plugin.app)


@pytest.mark.parametrize(
    "path", ["/data_docs/index.html", "/data_docs/tables/silver.orders.html", "/dbt_docs/index.html"]
)
def test_nobody_reads_a_page_without_a_login(plugin: ModuleType, path: str) -> None:
    assert TestClient(plugin.app).get(path).status_code == 401


@pytest.mark.parametrize(
    ("path", "text"),
    [("/data_docs/tables/silver.orders.html", "<p>orders"), ("/dbt_docs/index.html", "<p>models")],
)
def test_whoever_has_logged_in_reads_the_page_of_a_table_and_those_of_dbt(
    logged_in: TestClient, path: str, text: str
) -> None:
    answer = logged_in.get(path)
    assert (answer.status_code, answer.text) == (200, text)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/data_docs/index.html",
        "/data_docs/tables/silver.clicks.html",
        "/data_docs/tables/..%2Fhistory%2Fsilver.orders.json.html",
        "/data_docs/tables/..%2F..%2F..%2Fsecrets.env",
        "/data_docs/history/silver.orders.json",
        "/data_docs/index.html/../history/silver.orders.json",
        "/dbt_docs/manifest.json",
    ],
)
def test_nothing_else_is_served(logged_in: TestClient, path: str) -> None:
    assert logged_in.get(path).status_code == 404
