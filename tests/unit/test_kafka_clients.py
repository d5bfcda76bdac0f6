"""One properties file, as the Java clients read it, serves both Python clients."""

from pathlib import Path

import pytest

from lockstep import kafka_clients
from lockstep.settings import Settings

SASL = """\
# the team's cluster
security.protocol = SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="s\\"e=c;ret";
ssl.truststore.type=PEM
ssl.truststore.location=/certificates/ca.pem
"""


def settings(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return Settings(home=tmp_path, kafka="a:1,b:2", kafka_config=path)


def test_without_a_file_only_the_servers_are_set(tmp_path: Path) -> None:
    plain = Settings(home=tmp_path, kafka="a:1,b:2")
    assert kafka_clients.kafka_python_config(plain) == {"bootstrap_servers": ["a:1", "b:2"]}
    assert kafka_clients.confluent_config(plain) == {"bootstrap.servers": "a:1,b:2"}


def test_credentials_and_certificates_reach_both_clients(tmp_path: Path) -> None:
    given = settings(tmp_path, SASL)
    assert kafka_clients.kafka_python_config(given) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 's"e=c;ret',
        "ssl_cafile": "/certificates/ca.pem",
    }
    assert kafka_clients.confluent_config(given) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 's"e=c;ret',
        "ssl.ca.location": "/certificates/ca.pem",
    }


def test_an_empty_identification_algorithm_switches_the_host_check_off(tmp_path: Path) -> None:
    given = settings(tmp_path, "security.protocol=SSL\nssl.endpoint.identification.algorithm=\n")
    assert kafka_clients.kafka_python_config(given)["ssl_check_hostname"] is False
    assert kafka_clients.confluent_config(given)["ssl.endpoint.identification.algorithm"] == "none"


def test_a_java_key_store_is_refused_with_what_to_do(tmp_path: Path) -> None:
    given = settings(tmp_path, "security.protocol=SSL\nssl.truststore.location=/certificates/trust.jks\n")
    with pytest.raises(kafka_clients.KafkaConfigInvalid, match=r"ssl\.truststore\.type=PEM"):
        kafka_clients.kafka_python_config(given)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(kafka_clients.KafkaConfigInvalid, match=r"nowhere\.properties.*LOCKSTEP_KAFKA_CONFIG"):
        kafka_clients.confluent_config(Settings(home=tmp_path, kafka_config=tmp_path / "nowhere.properties"))
