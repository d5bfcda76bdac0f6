"""A topic that others made, and which takes records of clocks that are further ahead than its contract allows, is named."""

from contextlib import closing

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from lockstep.kafka_clients import admin
from lockstep.status.clocks import clocks_ahead
from lockstep.status.model import ClockAhead

HOUR = 3_600_000


@pytest.fixture
def configure(settings, stream):
    def changed(**configs):
        with closing(admin(settings)) as client:
            of_topic = {name.replace("_", "."): value for name, value in configs.items()}
            client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, stream.topic, of_topic)])

    return changed


def test_a_topic_that_lockstep_made_is_as_its_contract_says(settings, stream):
    assert clocks_ahead(settings, [stream]) == []


def test_a_topic_that_takes_more_is_named_with_both_limits(settings, stream, configure):
    configure(message_timestamp_after_max_ms=str(HOUR))
    assert clocks_ahead(settings, [stream]) == [ClockAhead(stream.topic, taken=HOUR, allowed=300_000)]


def test_a_topic_that_takes_less_is_not_named(settings, stream, configure):
    configure(message_timestamp_after_max_ms="1000")
    assert clocks_ahead(settings, [stream]) == []


def test_a_topic_with_the_time_of_its_broker_is_not_named(settings, stream, configure):
    configure(message_timestamp_after_max_ms=str(HOUR), message_timestamp_type="LogAppendTime")
    assert clocks_ahead(settings, [stream]) == []
