"""The Kafka broker, which is its own controller (KRaft)."""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

import javaproperties
import kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, net
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.java import find_java
from lockstep.stack.services import Launch, Service, run_dir

_INFRA = resource("infra") / "broker"
# A broker that is just up, on a machine that is busy, has taken more than three seconds for its metadata.
_SECONDS = 10


def properties(settings: Settings) -> str:
    """The broker's configuration: ``server.properties``, with the addresses and the directory of this home."""
    own = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{settings.kafka_port},CONTROLLER://{LOOPBACK}:{settings.kafka_controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{settings.kafka_port}",
        "controller.quorum.voters": f"1@{LOOPBACK}:{settings.kafka_controller_port}",
        "log.dirs": str(_log_dir(settings)),
    }
    return (_INFRA / "server.properties").read_text() + "\n" + javaproperties.dumps(own, timestamp=False)


def prepare(settings: Settings) -> None:
    """Fetch the jars, write the configuration, and format the log directory, which is done once."""
    jars.fetch(settings)
    run_dir(settings).mkdir(parents=True, exist_ok=True)
    _file(settings).write_text(properties(settings))
    if (_log_dir(settings) / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # `--ignore-formatted`: a run that was killed half way can be repeated.
    # `--cluster-id=` in one argument: a random id may begin with a dash.
    arguments = ["format", f"--cluster-id={cluster}", "--config", str(_file(settings)), "--ignore-formatted"]
    tool = [*_java(settings, "-Xmx256m", "-XX:TieredStopAtLevel=1"), "kafka.tools.StorageTool", *arguments]
    formatting = subprocess.run(tool, capture_output=True, text=True, check=False)
    if formatting.returncode:
        raise StackError(
            f"Kafka could not format {_log_dir(settings)}: {(formatting.stderr or formatting.stdout).strip()}",
            "check that the disk has room and that you may write the directory, then `lockstep up` again.",
        )


def launch(settings: Settings) -> Launch:
    """The process of the broker: its JVM."""
    prepare(settings)
    return Launch(command(settings), cwd=settings.home)


def command(settings: Settings) -> list[str]:
    """The command that runs the broker with the configuration that ``prepare`` wrote."""
    options = (f"-Xmx{settings.kafka_memory}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
    return [*_java(settings, *options), "kafka.Kafka", str(_file(settings))]


def check(settings: Settings) -> str:
    """Ask for the cluster's metadata, and check that the addresses that its brokers advertise can be reached."""
    brokers = advertised(settings)
    for number, (host, port) in brokers.items():
        try:
            net.reach(host, port)
        except Unhealthy as error:
            raise Unhealthy(
                f"Kafka answers at {settings.kafka}, but broker {number} advertises {host}:{port}, which cannot be "
                f"reached from here ({error}); set advertised.listeners of that broker to an address that clients reach"
            ) from error
    return f"{len(brokers)} broker at {settings.kafka}"


def post_start(settings: Settings) -> None:
    """Create the topics of the project's contracts that are missing.

    Raises:
        StackError: the cluster does not let us.
    """
    try:
        ensure_topics(settings)
    except kafka.errors.KafkaError as error:
        raise StackError(
            f"Kafka at {settings.kafka} has not all topics of the project's contracts, and creates none: {error}",
            "create the topics, or let this account create them, then `lockstep up kafka`.",
        ) from error


def advertised(settings: Settings) -> dict[int, tuple[str, int]]:
    """The addresses that the brokers advertise, by the brokers' numbers.

    Raises:
        Unhealthy: none of the bootstrap servers answers.
    """
    host, port = settings.kafka.split(",")[0].rsplit(":", 1)
    net.reach(host, int(port))
    try:
        metadata = AdminClient(confluent_config(settings) | {"log_level": 0}).list_topics(timeout=_SECONDS)
    except KafkaException as error:
        raise Unhealthy(f"Kafka at {settings.kafka} gives no metadata: {error}") from error
    return {number: (str(broker.host), broker.port) for number, broker in metadata.brokers.items()}


def tool(settings: Settings) -> list[str]:
    """The command that runs one of Kafka's tools, whose class follows. It writes warnings to the terminal, and no log."""
    return _java(settings, "-Xmx256m")


def _java(settings: Settings, *options: str) -> list[str]:
    classpath = ":".join(map(str, jars.classpath(settings, "kafka")))
    logging = f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}"
    return [str(find_java().executable), *options, "-Duser.timezone=UTC", logging, "-cp", classpath]


def _file(settings: Settings) -> Path:
    return run_dir(settings) / "kafka.properties"


def _log_dir(settings: Settings) -> Path:
    return settings.home / "kafka"


def external(settings: Settings) -> bool:
    """Whether the settings name another cluster than the embedded broker."""
    return settings.kafka != f"{LOOPBACK}:{settings.kafka_port}"


SERVICE = Service(
    name="kafka",
    external=external,
    check=check,
    launch=launch,
    prepare=prepare,
    post_start=post_start,
    ports=("kafka_port", "kafka_controller_port"),
    megabytes=500,
)
