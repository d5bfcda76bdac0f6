"""What the configuration of a Kafka sink refuses, and its defaults."""

import pytest

from lockstep.definition.alerting import Delivery
from lockstep.sinks.errors import InvalidName
from lockstep.sinks.kafka_sink import KafkaSinkConfig


@pytest.mark.parametrize("name", ["", "../x", "a b", "A", "x" * 101, "a\n"])
def test_a_sink_and_its_topic_have_a_name_that_kafka_allows(name):
    with pytest.raises(InvalidName, match="cannot name a sink"):
        KafkaSinkConfig(name)
    with pytest.raises(InvalidName, match="cannot name a sink"):
        KafkaSinkConfig("fraud", topic=name)


def test_the_default_delivery_is_exactly_once():
    assert KafkaSinkConfig("fraud").delivery == Delivery.EXACTLY_ONCE
