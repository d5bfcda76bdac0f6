"""The settings as the platform's parts use them."""

from pathlib import Path
from typing import Any

import pytest
from psycopg2.extensions import parse_dsn
from pydantic import SecretStr, ValidationError

from lockstep import lake
from lockstep.settings import Database, Settings
from lockstep.stack.services import environment


def test_a_password_with_blanks_and_quotes_reaches_the_database_as_it_is(settings):
    password = r"a b'c\d = e"
    own = settings.model_copy(update={"postgres_password": SecretStr(password)})
    assert parse_dsn(own.dsn("lockstep"))["password"] == password


@pytest.mark.parametrize("production", ["", "file:///data/the%20lake/", "s3://bucket/lake"])
def test_an_environment_is_in_the_same_storage_as_production(tmp_path: Path, production: str) -> None:
    dev = Settings(home=tmp_path, lake=production, env="dev")
    assert dev.production.lake.rstrip("/") == Settings(home=tmp_path, lake=production).lake.rstrip("/")
    assert dev.lake == f"{dev.production.lake.rstrip('/')}/_environments/dev"
    assert (dev.production.env, dev.home, dev.kafka) == ("", dev.production.home, dev.production.kafka)


def test_an_environment_has_names_of_its_own_for_all_that_it_shares_a_server_with(tmp_path: Path) -> None:
    production, dev, other = (Settings(home=tmp_path, env=env) for env in ("", "dev", "other"))
    names = [(s.control_database, lake.catalog_name(s, "gold.one"), lake.path(s, "gold.one")) for s in (dev, other)]
    assert names[0][:2] == ("lockstep_dev", "dev_gold.one")
    assert (production.control_database, lake.catalog_name(production, "gold.one")) == ("lockstep", "gold.one")
    assert not set(names[0]) & set(names[1])
    assert production.production == production


def test_the_tables_of_an_environment_are_not_among_those_of_production(tmp_path: Path) -> None:
    dev = Settings(home=tmp_path, env="dev")
    log = Path(lake.path(dev, "bronze.one")) / "_delta_log" / f"{0:020d}.json"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    assert (lake.tables(dev), lake.tables(dev.production)) == (["bronze.one"], [])


@pytest.mark.parametrize("env", ["Dev", "1dev", "_dev", "de-v", "dev.gold", "../dev", "dev;", "d" * 31, "dév", "dev\n"])
def test_a_name_that_would_reach_sql_or_a_path_as_something_else_is_refused(tmp_path: Path, env: str) -> None:
    with pytest.raises(ValidationError, match="is no name of an environment"):
        Settings(home=tmp_path, env=env)


def test_an_environment_cannot_have_the_database_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="choose another name"):
        Settings(home=tmp_path, package="lockstep_dev", env="dev")


def test_a_source_database_is_on_the_platforms_server_unless_it_names_another_one(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        package="shop",
        postgres_port=5433,
        postgres_password=SecretStr("own"),
        databases=(Database(name="crm"), Database(name="erp", host="erp.example.org", user="reader", database="ERP")),
        database_passwords=SecretStr('{"erp": "other"}'),
    )
    assert settings.sources == ("shop", "crm", "erp")
    assert settings.dsn("crm") == "postgresql://lockstep:own@127.0.0.1:5433/crm"
    assert settings.dsn("erp") == "postgresql://reader:other@erp.example.org:5432/ERP"
    assert settings.dsn("lockstep") == "postgresql://lockstep:own@127.0.0.1:5433/lockstep"
    assert "other" not in repr(settings)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"databases": [{"name": "shop"}]}, "two databases have the name shop"),
        ({"databases": [{"name": "crm"}, {"name": "crm"}]}, "two databases have the name crm"),
        ({"databases": [{"name": "C R M"}]}, "no name of a source database"),
        ({"databases": [{"name": "airflow"}]}, "no name of a source database"),
        ({"databases": [{"name": "crm", "password": "secret"}]}, "Extra inputs are not permitted"),
        ({"database_passwords": "secret"}, "no JSON object of names and passwords"),
        ({"database_passwords": '{"crm": 1}'}, "no JSON object of names and passwords"),
    ],
)
def test_source_databases_that_cannot_be_are_refused(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(home=tmp_path, package="shop", **values)


def test_the_source_databases_reach_a_child_process_and_their_passwords_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = Database(name="crm", host="crm.example.org")
    settings = Settings(home=tmp_path, databases=(crm,), database_passwords=SecretStr('{"crm": "hunter2"}'))
    given = environment(settings)
    assert "hunter2" not in str(given)
    monkeypatch.setenv("LOCKSTEP_DATABASES", given["LOCKSTEP_DATABASES"])
    assert Settings(home=tmp_path).databases == (crm,)
