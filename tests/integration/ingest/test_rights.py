"""A topic that this account may not see, or not read, stops its own stream, which says what right is missing."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
)
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.support.ports import free_ports
from tests.support.shop import Shop

from lockstep import ledger
from lockstep.contracts import Contract
from lockstep.definition.tables import bronze_of
from lockstep.errors import TopicForbidden
from lockstep.ingest import bronze
from lockstep.kafka_clients import admin, ensure_topics
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import broker
from lockstep.stack.errors import Unhealthy

# Who says nothing of rights may do everything, as without an authorizer.
AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
EVERYBODY = "User:*"


@pytest.fixture(scope="module")
def guarded(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings with a broker of their own, which looks at rights."""
    port, controller = free_ports(2)
    own = settings.model_copy(
        update={
            "home": tmp_path_factory.mktemp("guarded"),
            "kafka_port": port,
            "kafka_controller_port": controller,
            "kafka": f"{LOOPBACK}:{port}",
        }
    )
    broker.prepare(own)
    with (own.home / "run" / "kafka.properties").open("a") as file:
        file.write(AUTHORIZER)
    with (own.home / "log").open("w") as log:
        process = subprocess.Popen(broker.command(own), stdout=log, stderr=subprocess.STDOUT)
        try:
            answers = retry(retry=retry_if_exception_type(Unhealthy), stop=stop_after_delay(60), wait=wait_fixed(0.2))
            answers(broker.check)(own)
            yield settings.model_copy(update={"kafka": own.kafka})
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def streams(guarded: Settings, stream: Contract) -> tuple[Contract, Contract]:
    """Two streams with a record each."""
    other = replace(stream, name=f"{stream.name}_2", topic=f"{stream.topic}_2")
    ensure_topics(guarded, {c.name: c for c in (stream, other)})
    for contract in (stream, other):
        shop = Shop(guarded, contract)
        shop.raw(b"{}", 0)
        shop.flush()
    return stream, other


def forbid(settings: Settings, topic: str, operation: ACLOperation) -> None:
    right = ACL(EVERYBODY, "*", operation, ACLPermissionType.DENY, ResourcePattern(ResourceType.TOPIC, topic))
    allowed = ACL(EVERYBODY, "*", ACLOperation.ALL, ACLPermissionType.ALLOW, right.resource_pattern)
    with closing(admin(settings)) as client:
        client.create_acls([right, allowed])


@pytest.mark.parametrize(("operation", "may_not"), [(ACLOperation.DESCRIBE, "see"), (ACLOperation.READ, "read")])
def test_a_topic_without_rights_stops_its_own_stream_and_names_the_right(
    operation: ACLOperation, may_not: str, spark: Any, guarded: Settings, streams: tuple[Contract, Contract]
) -> None:
    forbidden, other = streams
    forbid(guarded, forbidden.topic, operation)
    assert bronze.behind(guarded, streams) == [forbidden, other], "nobody passes it over"
    with pytest.raises(TopicForbidden, match=f"may not {may_not} the topic {forbidden.topic}.*{operation.name}"):
        bronze.ingest(spark, guarded, forbidden, "run")
    assert ledger.latest(guarded, bronze_of(forbidden)) is None
    entry = bronze.ingest(spark, guarded, other, "run")
    assert entry
    assert entry.rows == 1
