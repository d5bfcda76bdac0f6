"""A topic that is not as its contract says is named with what to do, and stays as it is."""

from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from lockstep.deploy.topics import differences
from lockstep.kafka_clients import admin


def test_a_topic_as_lockstep_makes_it_has_no_difference(settings, stream):
    assert differences(settings, [stream]) == {}
    assert differences(settings, [replace(stream, topic=f"{stream.topic}_missing")]) == {}


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        (5, "it has 3 partitions, and the contract says 5: add them with"),
        (2, "it has 3 partitions, which cannot be taken"),
    ],
)
def test_another_number_of_partitions_is_named(settings, stream, partitions, said):
    ((reason,),) = differences(settings, [replace(stream, partitions=partitions)]).values()
    assert reason.startswith(said)


def test_another_configuration_is_named_with_the_command_that_changes_it(settings, stream):
    with closing(admin(settings)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, stream.topic, {"retention.ms": "3600000"})])
    stricter = replace(stream, max_clock_skew=timedelta(minutes=1))
    reasons = differences(settings, [stricter])[stream.topic]
    assert any("retention.ms is 3600000, and should be -1: `lockstep kafka configs --alter" in r for r in reasons)
    assert any(r.startswith("message.timestamp.after.max.ms is ") for r in reasons)
