"""What the stack takes from the project that it runs: names, modules and DAGs; and a project that has none of them."""

import json
import os
from pathlib import Path

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.resources import resource
from lockstep.settings import Settings
from lockstep.stack import airflow_services as airflow
from lockstep.stack import connector, connector_config, net, postgres
from lockstep.stack.services import inherited


@pytest.fixture
def acme(tmp_path: Path) -> Settings:
    """A project outside of the checkout, in a directory with a space in its name."""
    return Settings(project=tmp_path / "my work", package="acme", home=tmp_path / "home")


def bundles(settings: Settings) -> dict[str, str]:
    """The path of each of Airflow's DAG bundles, by the bundle's name."""
    configured = json.loads(airflow.configuration(settings)["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])
    return {bundle["name"]: bundle["kwargs"]["path"] for bundle in configured}


def test_the_source_database_and_the_topics_have_the_name_of_the_projects_package(acme: Settings) -> None:
    assert postgres.databases(acme) == ("acme", "lockstep", "airflow")
    config = connector_config.connector_config(acme, acme.package)
    assert (config["database.dbname"], config["topic.prefix"]) == ("acme", "acme")


def test_without_a_captured_table_no_connector_is_registered(acme: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONTRACTS, "_loaded", {})
    # Any request would fail: this home has no Kafka Connect.
    monkeypatch.setattr(net, "http", lambda: pytest.fail("Kafka Connect was asked"))
    connector.register(acme)


def test_airflow_loads_the_platforms_dags_and_the_projects_own(acme: Settings) -> None:
    platform = str(resource("dags"))
    assert bundles(acme) == {"platform": platform}
    own = acme.project / "dags"
    own.mkdir(parents=True)
    assert bundles(acme) == {"platform": platform, "project": str(own)}


def test_the_platforms_dags_are_loaded_once_where_they_are_the_projects_too() -> None:
    assert list(bundles(Settings())) == ["platform"]


def test_every_service_can_import_the_projects_modules(acme: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/callers/own")
    modules = str(acme.project / "spark")
    assert inherited(acme)["PYTHONPATH"] == os.pathsep.join([modules, "/callers/own"])
    assert modules in airflow.configuration(acme)["PYTHONPATH"].split(os.pathsep)


def test_the_environment_of_a_child_of_a_child_names_each_folder_once(
    acme: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", inherited(acme)["PYTHONPATH"])
    assert inherited(acme)["PYTHONPATH"] == os.environ["PYTHONPATH"]


def test_the_services_are_those_of_production_whatever_a_shell_or_a_file_says(acme: Settings) -> None:
    assert inherited(acme)["LOCKSTEP_ENV"] == ""
