"""One properties file, as the Java clients read it, serves both Python clients."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import kafka
import pytest

from lockstep import kafka_clients
from lockstep.properties import PropertiesInvalid
from lockstep.settings import Settings

SASL = """\
# the team's cluster
security.protocol = SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="s\\\\\\"e=c;ret";
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
    with pytest.raises(PropertiesInvalid, match=r"nowhere\.properties.*LOCKSTEP_KAFKA_CONFIG"):
        kafka_clients.confluent_config(Settings(home=tmp_path, kafka_config=tmp_path / "nowhere.properties"))


@pytest.mark.parametrize(
    "line",
    [
        "security.protocol=SSL",
        "security.protocol:SSL",
        "security.protocol SSL",
        "  security.protocol \t=  SSL",
        "security.\\\n    protocol = S\\\n  SL",
        "security.protocol=\\u0053SL",
        "! a comment\n\nsecurity.protocol=SSL",
    ],
)
def test_a_line_is_read_as_java_reads_it(tmp_path: Path, line: str) -> None:
    assert kafka_clients.confluent_config(settings(tmp_path, line))["security.protocol"] == "SSL"


def test_a_character_may_be_written_as_it_is_or_as_an_escape(tmp_path: Path) -> None:
    jaas = 'sasl.jaas.config=PlainLoginModule required username="zo\\u00eb" password="é\\u20ac=1";'
    given = kafka_clients.kafka_python_config(settings(tmp_path, jaas))
    assert (given["sasl_plain_username"], given["sasl_plain_password"]) == ("zoë", "é€=1")


@pytest.mark.parametrize(
    ("jaas", "password"),
    [
        ('username="a" password="b c";', "b c"),
        ("username='a' password='b';", "b"),
        ("password = b username = a ;", "b"),
        ("username=a password=b;", "b"),
        ('username="a" password="#b";', "#b"),
        (r'username="a" password="b\\\\c";', r"b\c"),
        ('username="a" password="";', ""),
    ],
)
def test_the_jaas_line_may_quote_as_it_likes(tmp_path: Path, jaas: str, password: str) -> None:
    given = kafka_clients.confluent_config(settings(tmp_path, f"sasl.jaas.config=PlainLoginModule required {jaas}"))
    assert (given["sasl.username"], given["sasl.password"]) == ("a", password)


@pytest.mark.parametrize(
    ("content", "refused", "reason"),
    [
        (rb"sasl.mechanism=\u00g1", PropertiesInvalid, r"wrong escape .*\\u00g1"),
        (b"sasl.mechanism=\xe9", PropertiesInvalid, r"are not UTF-8 .*at byte 15"),
        (
            b'sasl.jaas.config=PlainLoginModule required username="a',
            kafka_clients.KafkaConfigInvalid,
            "cannot be parsed",
        ),
    ],
)
def test_a_file_that_cannot_be_parsed_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, refused: type[PropertiesInvalid], reason: str
) -> None:
    (tmp_path / "client.properties").write_bytes(content)
    with pytest.raises(refused, match=reason):
        kafka_clients.confluent_config(Settings(home=tmp_path, kafka_config=tmp_path / "client.properties"))


class SlowReader:
    """A consumer of a partition with five records: each poll takes a minute, and gives one record, if it is committed."""

    def __init__(self, committed: int) -> None:
        self.at, self.now, self._committed = 0, 0.0, committed

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0}

    def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, 5)

    def position(self, _partition: Any) -> int:
        return self.at

    def poll(self, timeout_ms: int) -> dict[Any, list[Any]]:  # noqa: ARG002
        self.now += 60
        if self.at >= self._committed:
            return {}
        self.at += 1
        return {kafka.TopicPartition("t", 0): [SimpleNamespace(key=f"{self.at}".encode(), value=b"v")]}

    def assign(self, _partitions: Any) -> None: ...

    def seek_to_beginning(self) -> None: ...

    def close(self) -> None: ...


def test_a_long_changelog_is_read_to_its_end_and_an_open_transaction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(committed: int) -> dict[bytes, bytes]:
        reader = SlowReader(committed)
        monkeypatch.setattr(kafka_clients, "consumer", lambda *_, **__: reader)
        monkeypatch.setattr(kafka_clients.time, "monotonic", lambda: reader.now)
        return kafka_clients.latest_by_key(cast(Any, None), "t")

    assert len(read(committed=5)) == 5
    with pytest.raises(kafka_clients.KafkaUnavailable, match="a transaction is open in it"):
        read(committed=3)
