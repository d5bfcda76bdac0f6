"""Kafka Connect with Debezium, which writes the changes of the captured tables to Kafka.

The connector has the name of the project's package, as the source database and the prefix of the topics have.
"""

import json
from pathlib import Path
from string import Template
from typing import Any

import httpx
import javaproperties

from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import java_properties
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, net
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.java import find_java
from lockstep.stack.services import Launch, Service, run_dir

_INFRA = resource("infra") / "connect"


def prepare(settings: Settings) -> None:
    """Fetch the jars, and write the worker's configuration."""
    jars.fetch(settings)
    run_dir(settings).mkdir(parents=True, exist_ok=True)
    _file(settings).write_text(worker_properties(settings))
    _file(settings).chmod(0o600)


def worker_properties(settings: Settings) -> str:
    """The worker's configuration: ``infra/connect/worker.properties``, how it reaches Kafka, and where it listens."""
    own = _secured(settings) | {"listeners": f"http://{settings.listen}:{settings.connect_port}"}
    return (_INFRA / "worker.properties").read_text() + "\n" + javaproperties.dumps(own, timestamp=False)


def _secured(settings: Settings) -> dict[str, str]:
    """SASL and TLS of the Kafka clients, for the worker itself and for its connectors' clients."""
    properties = java_properties(settings)
    clients = ("", "producer.", "consumer.", "admin.")
    return {client + name: value for client in clients for name, value in properties.items()}


def launch(settings: Settings) -> Launch:
    """The process of the worker: its JVM."""
    prepare(settings)
    classpath = ":".join(map(str, jars.classpath(settings, "connect")))
    argv = [str(find_java().executable), f"-Xmx{settings.connect_memory}", "-Duser.timezone=UTC"]
    # It starts often and computes little. With the first compiler (C1) alone, a start costs half.
    argv += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    argv += [f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}", "-cp", classpath]
    # The connector's configuration names this variable, so Connect neither stores the password nor shows it over REST.
    env = {"LOCKSTEP_POSTGRES_PASSWORD": settings.postgres_password.get_secret_value()}
    return Launch([*argv, "org.apache.kafka.connect.cli.ConnectDistributed", str(_file(settings))], env, settings.home)


def readiness(settings: Settings) -> str:
    """Check that the worker answers."""
    _get(settings, "/connectors")
    return f"worker at {settings.connect_url}"


def check(settings: Settings) -> str:
    """Check that the worker answers, and that the connector and its task run. Without captured tables there is no connector."""
    connector = settings.package
    connectors = _get(settings, "/connectors")
    if not captured_tables(settings):
        return f"worker at {settings.connect_url}, no contract captures a table"
    if connector not in connectors:
        raise Unhealthy(f"Kafka Connect at {settings.connect_url} has no connector {connector}; `lockstep up connect`")
    status = _get(settings, f"/connectors/{connector}/status")
    states = [status["connector"], *status["tasks"]]
    idle = [state for state in states if state["state"] != "RUNNING"]
    if idle or not status["tasks"]:
        cause = "".join(state.get("trace", "").partition("\n")[0] for state in idle)
        names = ", ".join(state["state"] for state in states)
        raise Unhealthy(f"connector {connector} is {names} {cause}".rstrip() + "; `lockstep up connect` restarts it")
    return f"worker at {settings.connect_url}, connector {connector} runs"


def captured_tables(settings: Settings) -> list[str]:
    """The tables (``schema.name``) whose changes the project's contracts read, sorted."""
    prefix = f"{settings.package}."
    return sorted(c.topic.removeprefix(prefix) for c in CONTRACTS.values() if c.kind == "changes")


def connector_config(settings: Settings) -> dict[str, str]:
    """The connector's configuration: ``infra/connect/source.json`` with the addresses and the tables of the contracts."""
    values = {
        "postgres_host": settings.postgres_host,
        "postgres_port": str(settings.postgres_port),
        "postgres_user": settings.postgres_user,
        "database": settings.package,
        "tables": ",".join(captured_tables(settings)),
    }
    template: dict[str, str] = json.loads((_INFRA / "source.json").read_text())
    return {name: Template(value).substitute(values) for name, value in template.items()}


def post_start(settings: Settings) -> None:
    """Register the connector. If it has this configuration already, restart it where it has failed.

    Without captured tables there is nothing to register: Debezium would take an empty list for all tables.
    """
    if not captured_tables(settings):
        return
    connector = f"{settings.connect_url}/connectors/{settings.package}"
    expected = connector_config(settings)
    current = net.http().get(f"{connector}/config")
    registered = {name: value for name, value in current.json().items() if name != "name"} if current.is_success else {}
    if registered != expected:
        _expect(net.http().put(f"{connector}/config", json=expected, timeout=60))
        return
    _expect(net.http().post(f"{connector}/restart", params={"includeTasks": "true", "onlyFailed": "true"}, timeout=60))


def _expect(answer: httpx.Response) -> None:
    if not answer.is_success:
        raise StackError(
            f"Kafka Connect refused the connector ({answer.status_code}): {answer.text}",
            "correct infra/connect/source.json or what it names, then `lockstep up connect`.",
        )


def _get(settings: Settings, path: str) -> Any:
    try:
        answer = net.http().get(settings.connect_url + path)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise Unhealthy(f"Kafka Connect at {settings.connect_url}{path}: {error}") from error
    return answer.json()


def _file(settings: Settings) -> Path:
    return run_dir(settings) / "connect.properties"


def external(settings: Settings) -> bool:
    """Whether the settings name another Kafka Connect than the embedded one."""
    return settings.connect_url != f"http://{LOOPBACK}:{settings.connect_port}"


SERVICE = Service(
    name="connect",
    external=external,
    check=check,
    readiness=readiness,
    launch=launch,
    needs=("postgres", "kafka"),
    prepare=prepare,
    post_start=post_start,
    ports=("connect_port",),
    megabytes=700,
)
