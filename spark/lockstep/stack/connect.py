"""Kafka Connect with Debezium, which writes the changes of the captured tables to Kafka."""

from pathlib import Path

import javaproperties

from lockstep.kafka_clients import java_properties
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import connector, connector_config, jars, net
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
    # Of its heap 20 MB live. Java's own choice to begin with is a 64th of the machine's memory, all of which it fills.
    argv = [str(find_java().executable), "-Xms64m", f"-Xmx{settings.connect_memory}", "-Duser.timezone=UTC"]
    # It starts often and computes little. With the first compiler (C1) alone, a start costs half.
    argv += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    argv += [f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}", "-cp", classpath]
    # The connectors' configurations name these variables, so Connect neither stores the passwords nor shows them over REST.
    env = {connector_config.password_variable(settings, name): settings.password(name) for name in settings.sources}
    return Launch([*argv, "org.apache.kafka.connect.cli.ConnectDistributed", str(_file(settings))], env, settings.home)


def readiness(settings: Settings) -> str:
    """Check that the worker answers."""
    net.ask(f"{settings.connect_url}/connectors", f"Kafka Connect at {settings.connect_url}")
    return f"worker at {settings.connect_url}"


def check(settings: Settings) -> str:
    """Check that the worker answers, and that the connector and its task run. Without captured tables there is no connector."""
    return f"{readiness(settings)}, {connector.check(settings)}"


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
    post_start=connector.register,
    ports=("connect_port",),
    megabytes=500,
)
