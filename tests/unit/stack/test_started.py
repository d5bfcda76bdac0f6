"""What a service was started with is kept beside it, and it gets the same again; a secret is never written."""

import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from lockstep.settings import Database, Settings
from lockstep.stack import airflow_services, broker, connect, secrets, spark_history, spark_properties, started
from lockstep.stack.readers import FIXED, READ_BY
from lockstep.stack.registry import SERVICES
from lockstep.stack.started import Started


@pytest.fixture
def made(settings: Settings) -> Settings:
    return secrets.ensure(settings.model_copy(update={"webhook_token": SecretStr("a-token-of-four-words")}))


def test_what_is_remembered_is_read_back_and_only_its_owner_reads_it(made: Settings) -> None:
    assert started.read(made, "live") is None
    started.remember(made, "live")
    assert started.read(made, "live") == Started.of(made)
    file = made.home / "run" / "settings" / "live.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_secret_is_written(made: Settings) -> None:
    started.remember(made, "live")
    text = (made.home / "run" / "settings" / "live.json").read_text()
    values = [value.get_secret_value() for _, value in made if isinstance(value, SecretStr)]
    assert len([value for value in values if value]) == 6
    assert [value for value in values if value and value in text] == []


def test_a_secret_that_has_changed_is_told_by_its_digest_and_that_of_another_home_is_another(made: Settings) -> None:
    name, now = "LOCKSTEP_WEBHOOK_TOKEN", Started.of(made).secrets
    assert Started.of(made.model_copy(update={"webhook_token": SecretStr("other")})).secrets[name] != now[name]
    elsewhere = made.model_copy(update={"airflow_jwt_secret": SecretStr("of another home")})
    assert Started.of(elsewhere).secrets[name] != now[name], "a digest without a key could be guessed"


def test_a_service_gets_the_settings_that_it_was_started_with(made: Settings) -> None:
    environ = {
        "PATH": "/bin",
        "LOCKSTEP_MAX_LAG_SECONDS": "1",
        "LOCKSTEP_KAFKA_CONFIG": "/gone",
        "LOCKSTEP_WEBHOOK_TOKEN": "a-token-of-four-words",
        "LOCKSTEP_MAIL_PASSWORD": "old",
    }
    loaded = made.model_copy(update={"mail_password": SecretStr("old")})
    Started.of(made).give(environ, loaded)
    assert (environ["PATH"], environ["LOCKSTEP_MAX_LAG_SECONDS"]) == ("/bin", "600")
    assert "LOCKSTEP_KAFKA_CONFIG" not in environ, "it is not set any more"
    assert environ["LOCKSTEP_WEBHOOK_TOKEN"] == "a-token-of-four-words"
    assert "LOCKSTEP_MAIL_PASSWORD" not in environ, "the new one is in a file"


def test_every_setting_has_services_that_read_it_or_a_way() -> None:
    assert READ_BY.keys() | FIXED.keys() == {*Settings.model_fields}
    assert READ_BY.keys() & FIXED.keys() == set()
    assert {service for services in READ_BY.values() for service in services} <= SERVICES.keys()


def rendered(settings: Settings) -> dict[str, str]:
    """The configuration of each server, as it is written."""
    (scheduler,) = (service for service in airflow_services.SERVICES if service.name == "airflow-scheduler")
    assert scheduler.launch
    return {
        "kafka": broker.properties(settings) + " ".join(broker.command(settings)),
        "connect": connect.worker_properties(settings) + settings.connect_memory,
        "spark": str(spark_properties.of(settings)) + settings.spark_memory,
        "spark-history": str(spark_history.properties(settings.model_copy(update={"event_log": True}))),
        "airflow-scheduler": str(airflow_services.configuration(settings)),
    }


@pytest.mark.parametrize("field", sorted(READ_BY))
def test_a_setting_changes_the_configuration_of_its_readers_only(
    made: Settings, field: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Where Java is, and the jars are, is not what this is about.
    monkeypatch.setattr(broker, "_java", lambda _settings, *options: [*options])
    (tmp_path / "spark.conf").write_text("spark.ui.enabled false")
    other = {
        "spark_config": tmp_path / "spark.conf",
        "event_log": True,
        "cores": 99,
        "notifiers": (),
        "databases": (Database(name="crm"),),
        "database_passwords": SecretStr('{"crm": "other"}'),
        "webhook_token": SecretStr("other"),
        "mail_password": SecretStr("other"),
    }
    value = getattr(made, field)
    changed = made.model_copy(update={field: other.get(field, f"{value}9" if isinstance(value, str) else 12345)})
    before, after = rendered(made), rendered(changed)
    assert {service for service in before if before[service] != after[service]} <= {*READ_BY[field]}
