"""Clients of the Kafka cluster, from one set of settings.

``LOCKSTEP_KAFKA_CONFIG`` names a properties file as the Java clients read it (SASL, TLS), so that Spark, Connect and
the Python clients share one file. Keys and certificates must be PEM: the Python clients read no Java key stores.
"""

import logging
import shlex
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

import kafka
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka.admin import ConfigResource

from lockstep.contracts import CONTRACTS, Contract
from lockstep.errors import LockstepError
from lockstep.properties import PropertiesInvalid, read
from lockstep.settings import Settings

# kafka-python logs each connection that it opens and closes at INFO.
logging.getLogger("kafka").setLevel(logging.WARNING)

# Java's name -> (kafka-python's, librdkafka's)
_PLAIN_NAMES = {
    "security.protocol": ("security_protocol", "security.protocol"),
    "sasl.mechanism": ("sasl_mechanism", "sasl.mechanism"),
    "ssl.truststore.location": ("ssl_cafile", "ssl.ca.location"),
    "ssl.keystore.location": ("ssl_certfile", "ssl.certificate.location"),
    "ssl.key.location": ("ssl_keyfile", "ssl.key.location"),
    "ssl.key.password": ("ssl_password", "ssl.key.password"),
}

# Records keep the time of their producer, and are never deleted by age.
KEEP_ALL = {"message.timestamp.type": "CreateTime", "retention.ms": "-1", "cleanup.policy": "delete"}
# A broker on the same network answers in milliseconds, one that is starting within seconds. A person waits for the rest.
_BOOTSTRAP_MS = 8_000
# Longer than the transaction timeout of any producer of ours: the broker has ended each of their transactions by then.
_OPEN_TRANSACTION_SECONDS = 90

_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class KafkaUnavailable(LockstepError):
    """No broker answers, or it refuses the credentials."""


class KafkaConfigInvalid(PropertiesInvalid):
    """The Kafka properties file asks for what the Python clients cannot do."""


def java_properties(settings: Settings) -> dict[str, str]:
    """The properties for a Java client (Spark, Connect): those of the file, and the bootstrap servers of the settings."""
    properties = read(settings.kafka_config, "LOCKSTEP_KAFKA_CONFIG") if settings.kafka_config else {}
    return properties | {"bootstrap.servers": settings.kafka}


def kafka_python_config(settings: Settings) -> dict[str, Any]:
    """The properties by the names of kafka-python.

    Raises:
        KafkaConfigInvalid: a Java key store, which the Python clients cannot read.
    """
    properties = java_properties(settings)
    config: dict[str, Any] = {"bootstrap_servers": settings.kafka.split(",")}
    config |= {python: properties[java] for java, (python, _) in _PLAIN_NAMES.items() if java in properties}
    username, password = _credentials(properties)
    if username:
        config |= {"sasl_plain_username": username, "sasl_plain_password": password}
    if not _verifies_host(properties):
        config["ssl_check_hostname"] = False
    return config


def confluent_config(settings: Settings) -> dict[str, Any]:
    """The properties by the names of librdkafka.

    Raises:
        KafkaConfigInvalid: a Java key store, which the Python clients cannot read.
    """
    properties = java_properties(settings)
    config: dict[str, Any] = {"bootstrap.servers": settings.kafka}
    config |= {librdkafka: properties[java] for java, (_, librdkafka) in _PLAIN_NAMES.items() if java in properties}
    username, password = _credentials(properties)
    if username:
        config |= {"sasl.username": username, "sasl.password": password}
    if not _verifies_host(properties):
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config


def produce(client: Producer, topic: str, **record: Any) -> None:
    """Give a record to a producer of librdkafka; while its queue is full, wait until some records are acknowledged."""
    while True:
        try:
            client.produce(topic, **record)
            return
        except BufferError:
            client.poll(1)


def is_fenced(error: KafkaException) -> bool:
    """Whether a newer producer has taken over the transactional id."""
    return error.args[0].code() in _FENCED


def consumer(settings: Settings, **options: Any) -> kafka.KafkaConsumer:
    """A consumer without a group that reads committed records only; assign partitions to it yourself.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    defaults = {"enable_auto_commit": False, "isolation_level": "read_committed", "auto_offset_reset": "none"}
    return _connected(kafka.KafkaConsumer, settings, defaults | options)


def admin(settings: Settings) -> kafka.KafkaAdminClient:
    """An admin client of the cluster.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    return _connected(kafka.KafkaAdminClient, settings, {})


def producer(settings: Settings, **options: Any) -> kafka.KafkaProducer:
    """A producer that waits for all replicas.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    return _connected(kafka.KafkaProducer, settings, {"acks": "all"} | options)


def _connected(client: Any, settings: Settings, options: dict[str, Any]) -> Any:
    config = kafka_python_config(settings) | {"bootstrap_timeout_ms": _BOOTSTRAP_MS} | options
    try:
        return client(**config)
    except kafka.errors.KafkaError as error:
        raise KafkaUnavailable(
            f"Kafka at {settings.kafka} does not answer ({error}); start it with `lockstep up kafka`, or correct "
            "LOCKSTEP_KAFKA and LOCKSTEP_KAFKA_CONFIG"
        ) from error


def ensure_topics(settings: Settings, contracts: Mapping[str, Contract] = CONTRACTS) -> list[str]:
    """Create the contracts' topics that are missing, and wait until each has its leaders. Topics that exist stay as they are.

    Records keep the time of their producer, and are never deleted by age: a history that is played again is old when it arrives.
    The broker refuses those of a producer whose clock is ahead by more than ``max_clock_skew``: what others send in the time that
    it is ahead would be late.

    Returns:
        the names of the topics created by this call, sorted.
    """
    return create_topics(
        settings, {c.topic: {"num_partitions": c.partitions, "configs": configs(c)} for c in contracts.values()}
    )


def configs(contract: Contract) -> dict[str, str]:
    """The configuration with which the contract's topic is created."""
    return KEEP_ALL | {"message.timestamp.after.max.ms": str(contract.max_clock_skew // timedelta(milliseconds=1))}


def configured(client: kafka.KafkaAdminClient, names: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str | None]]:
    """The configuration that topics have on the broker, its defaults included.

    Args:
        names: by topic, which must exist, the properties that are asked for.
    """
    asked = [ConfigResource("TOPIC", topic, dict.fromkeys(of_topic)) for topic, of_topic in names.items()]
    answer = client.describe_configs(asked, config_filter="all") if asked else {}
    return {
        topic: {name: found.get("value") for name, found in values.items()}
        for of_type in answer.values()
        for topic, values in of_type.items()
    }


def create_topics(settings: Settings, topics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Create those of the topics that are missing, and wait until each has its leaders. Topics that exist stay as they are.

    Args:
        topics: by name, ``num_partitions`` and ``configs``.

    Returns:
        the names of the topics created by this call, sorted.
    """
    with closing(admin(settings)) as client:
        existing = set(client.list_topics())
        missing = {name: dict(options) for name, options in topics.items() if name not in existing}
        if missing:
            try:
                client.create_topics(missing)
            except kafka.errors.TopicAlreadyExistsError:
                # Connect or another process has created one of them meanwhile: create the others.
                return create_topics(settings, topics)
            client.wait_for_topics(sorted(missing))
        return sorted(missing)


def latest_by_key(settings: Settings, topic: str) -> dict[bytes, bytes]:
    """Read a changelog topic as a table: the newest committed value of each key, without the keys that were deleted.

    A topic that does not exist has none. It reads up to the end that the log had at the call, and waits for transactions that
    were open there. So it misses nothing that was committed before the call.

    Raises:
        KafkaUnavailable: no broker answers, or a transaction stays open for longer than 90 s.
    """
    with closing(consumer(settings, isolation_level="read_uncommitted")) as reader:
        partitions = [kafka.TopicPartition(topic, p) for p in reader.partitions_for_topic(topic) or ()]
        ends = reader.end_offsets(partitions)
    if not partitions:
        return {}
    table: dict[bytes, bytes] = {}
    deadline = time.monotonic() + _OPEN_TRANSACTION_SECONDS
    with closing(consumer(settings)) as reader:
        reader.assign(partitions)
        reader.seek_to_beginning()
        while any(reader.position(tp) < end for tp, end in ends.items()):
            for record in (r for records in reader.poll(timeout_ms=500).values() for r in records):
                table[record.key] = record.value
                # As long as records come, no transaction holds the reader up.
                deadline = time.monotonic() + _OPEN_TRANSACTION_SECONDS
            if time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"{topic} could not be read to its end within {_OPEN_TRANSACTION_SECONDS} s: a transaction is open in it. "
                    "See `lockstep kafka transactions find-hanging`, then try again."
                )
    return {key: value for key, value in table.items() if value is not None}


def _credentials(properties: Mapping[str, str]) -> tuple[str, str]:
    """User name and password in the JAAS line of SASL PLAIN and SCRAM; empty if there is none."""
    # JAAS quotes and escapes values as a POSIX shell does.
    lexer = shlex.shlex(properties.get("sasl.jaas.config", ""), posix=True, punctuation_chars="=;")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = list(lexer)
    except ValueError as error:
        raise KafkaConfigInvalid(
            f"sasl.jaas.config in Kafka's client properties cannot be parsed ({error}); a quote inside of a value is "
            'written as \\\\\\" in the file'
        ) from error
    fields = {name: value for name, sign, value in zip(tokens, tokens[1:], tokens[2:], strict=False) if sign == "="}
    return fields.get("username", ""), fields.get("password", "")


def _verifies_host(properties: Mapping[str, str]) -> bool:
    for store in ("truststore", "keystore"):
        if f"ssl.{store}.location" in properties and properties.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
            raise KafkaConfigInvalid(
                f"ssl.{store}.type in Kafka's client properties is not PEM, and the Python clients read no Java key "
                f"stores; export the certificates to a PEM file and set ssl.{store}.type=PEM"
            )
    return properties.get("ssl.endpoint.identification.algorithm", "https") != ""
