import json
from pathlib import Path

import javaproperties
import pytest

from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import java_properties
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import airflow_services, broker, connect, connector_config, secrets, spark_properties
from lockstep.stack.errors import StackError
from lockstep.stack.registry import SERVICES, known, select
from lockstep.stack.services import environment, inherited
from lockstep.stack.supervisor import Supervisor

SECRETS = ("postgres_password", "airflow_password", "airflow_fernet_key", "airflow_jwt_secret", "token_key")


@pytest.fixture
def made(settings: Settings) -> Settings:
    """Settings with their secrets."""
    return secrets.ensure(settings)


def leaked(settings: Settings, text: str) -> list[str]:
    return [name for name in SECRETS if getattr(settings, name).get_secret_value() in text]


def test_what_a_service_needs_comes_before_it() -> None:
    assert [service.name for service in select(["connect"])] == ["postgres", "kafka", "connect"]
    names = [service.name for service in select()]
    assert set(names) == {name for name, service in SERVICES.items() if not service.on_demand}
    for service in select():
        assert all(names.index(needed) < names.index(service.name) for needed in service.needs)


def test_airflow_is_the_name_of_all_its_processes() -> None:
    assert {"airflow-scheduler", "airflow-triggerer", "postgres"} < {service.name for service in select(["airflow"])}


def test_services_on_demand_start_only_when_they_are_named() -> None:
    assert {"shop", "spark-history"}.isdisjoint(service.name for service in select())
    assert [service.name for service in select(["shop"])] == ["postgres", "kafka", "shop"]
    assert known().keys() - SERVICES.keys() == {"shop", "commands"}


def test_a_misspelt_service_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(StackError, match=r"no service named kafak(.|\n)*kafka"):
        select(["kafak"])


def test_all_services_together_fit_in_8_gb() -> None:
    assert sum(service.megabytes for service in select()) <= 8192


def test_every_service_listens_on_a_port_of_its_own(settings: Settings) -> None:
    ports = [getattr(settings, name) for service in SERVICES.values() for name in service.ports]
    assert len(ports) == len(set(ports))


def test_children_read_the_very_same_settings_but_no_secret_from_their_environment(
    made: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(made).items():
        monkeypatch.setenv(name, value)
    assert Settings(_env_file=made.secrets_file) == made  # type: ignore[call-arg]
    assert leaked(made, json.dumps(environment(made))) == []
    assert inherited(made)["TZ"] == "UTC"


def test_no_generated_file_of_the_supervisor_holds_a_secret(made: Settings) -> None:
    config = Supervisor(made).configuration(list(SERVICES.values()))
    assert leaked(made, config) == []
    for service in SERVICES.values():
        assert (f"[program:{service.name}]" in config) == (service.launch is not None)


def test_a_home_with_a_long_path_still_has_a_socket_that_the_kernel_takes(tmp_path: Path) -> None:
    long = Supervisor(Settings(home=tmp_path / ("long" * 30)))
    assert len(str(long.socket)) <= 90
    assert long.socket != Supervisor(Settings(home=tmp_path / ("longer" * 20))).socket


def test_the_broker_and_the_spark_server_listen_on_the_loopback_only(settings: Settings) -> None:
    listeners = [line for line in broker.properties(settings).splitlines() if "listeners=" in line]
    assert len(listeners) == 2
    assert all(address.split("//")[1].startswith(LOOPBACK) for line in listeners for address in line.split(","))
    assert spark_properties.of(settings)["spark.connect.grpc.binding.address"] == LOOPBACK


def test_a_path_in_a_properties_file_is_read_by_java_as_it_is() -> None:
    written = broker.properties(Settings(home=Path("/home/jörg/my work")))
    assert "log.dirs=/home/j\\u00f6rg/my work/kafka" in written
    assert javaproperties.loads(written)["log.dirs"] == "/home/jörg/my work/kafka"
    backslash = broker.properties(Settings(home=Path(r"/home/a\b")))
    assert javaproperties.loads(backslash)["log.dirs"] == r"/home/a\b/kafka"


def test_the_file_of_the_fair_scheduler_is_named_as_hadoop_reads_it(settings: Settings) -> None:
    """Hadoop does not decode a URI: this fails in a directory with a space in its name when the file is named by one."""
    file = spark_properties.of(settings)["spark.scheduler.allocation.file"]
    assert Path(file.removeprefix("file://")).is_file()


def test_a_lake_that_is_a_file_uri_is_a_path_for_everybody() -> None:
    assert Settings(lake="file:///home/my%20work/lake").lake == "/home/my work/lake"
    assert Settings(lake="s3://bucket/my%20lake").lake == "s3://bucket/my%20lake"


def test_records_are_never_removed_for_their_age(settings: Settings) -> None:
    assert "log.retention.ms=-1" in broker.properties(settings).splitlines()


def test_every_captured_contract_is_in_the_connector_and_the_password_is_not(made: Settings) -> None:
    config = connector_config.connector_config(made, made.package)
    captured = {f"shop.{table}" for table in config["table.include.list"].split(",")}
    assert captured == {contract.topic for contract in CONTRACTS.values() if contract.kind == "changes"}
    assert config["database.password"] == "${env:LOCKSTEP_POSTGRES_PASSWORD}"
    assert leaked(made, json.dumps(config)) == []


def test_all_airflow_processes_have_the_same_secrets_and_settings(made: Settings) -> None:
    processes = [service for service in airflow_services.SERVICES if service.launch]
    launches = [service.launch(made) for service in processes if service.launch]
    assert len(launches) == 4
    assert all(launch.env == launches[0].env for launch in launches)
    assert not any(leaked(made, " ".join(launch.argv)) for launch in launches)
    assert launches[0].env["AIRFLOW__API_AUTH__JWT_SECRET"] == made.airflow_jwt_secret.get_secret_value()


def test_connect_reads_the_same_properties_of_kafka_as_every_other_client(settings: Settings, tmp_path: Path) -> None:
    text = r'sasl.jaas.config=PlainLoginModule required username="a" password="\u00e9\\\"=\\\\ b";'
    (tmp_path / "client.properties").write_text(text)
    secured = settings.model_copy(update={"kafka_config": tmp_path / "client.properties"})
    worker = javaproperties.loads(connect.worker_properties(secured))
    jaas = java_properties(secured)["sasl.jaas.config"]
    assert jaas == r'PlainLoginModule required username="a" password="é\"=\\ b";'
    assert worker["sasl.jaas.config"] == worker["consumer.sasl.jaas.config"] == jaas


def test_the_broker_keeps_its_log_in_a_directory_of_any_name(settings: Settings) -> None:
    home = settings.home / "zoë's work"
    own = javaproperties.loads(broker.properties(settings.model_copy(update={"home": home})))
    assert own["log.dirs"].startswith(f"{home}/")
    # Java reads a properties file as Latin-1.
    assert broker.properties(settings.model_copy(update={"home": home})).isascii()


def test_only_the_checkpoints_of_a_local_lake_are_renamed_by_the_older_interface(settings: Settings) -> None:
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    assert manager in spark_properties.of(settings)
    assert manager not in spark_properties.of(settings.model_copy(update={"lake": "s3://lake/of/ours"}))
