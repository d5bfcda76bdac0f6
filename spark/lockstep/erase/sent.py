"""What the platform has sent to the topics of its sinks: how long the broker keeps it."""

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep.kafka_clients import admin, configured
from lockstep.sinks.kafka_sink import ALERTS, CORRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lockstep.settings import Settings

TOPICS = (ALERTS, CORRECTIONS)
_CONFIGS = ("retention.ms", "segment.ms")


def kept_for(settings: "Settings") -> dict[str, timedelta]:
    """By topic, how long the broker keeps a record at most; topics that keep all for ever, or do not exist, are left out.

    A segment goes when its newest record is as old as the retention, and its oldest one is older by what a segment spans.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    with closing(admin(settings)) as client:
        found = configured(client, dict.fromkeys({*TOPICS} & {*client.list_topics()}, _CONFIGS))
    kept = {topic: _times(values) for topic, values in found.items()}
    return {topic: sum(times, timedelta()) for topic, times in kept.items() if min(times) >= timedelta()}


def _times(values: "Mapping[str, str | None]") -> list[timedelta]:
    return [timedelta(milliseconds=int(str(values[name]))) for name in _CONFIGS]
