"""A worker of a share group. Run as ``python -m shop.readers.share GROUP TOPIC NAME``.

The broker hands each record to one worker, and counts its deliveries. The worker acknowledges a record by the kind of its task:

- most tasks are accepted: they are done, and not handed out again;
- ``again`` is released the first time: the broker then hands it to any worker;
- ``poison`` is rejected: the broker does not hand it out again;
- ``hang`` hangs its first worker: another worker gets it after :data:`LOCK_SECONDS`, or when the first one dies.
"""

import json
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka import AcknowledgeType, ShareConsumer
from kafka.admin import ConfigResource, ConfigResourceType

from lockstep import settings
from lockstep.kafka_clients import admin, confluent_config
from lockstep.processes import end_with_parent

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The smallest value that the broker allows.
LOCK_SECONDS = 15
# Long enough for both workers to get some of the tasks.
WORK_SECONDS = 0.05


def prepare_group(config: "Settings", group: str) -> None:
    """Configure a share group: it begins at the start of the log, and a record is unlocked after LOCK_SECONDS."""
    wanted = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(LOCK_SECONDS * 1000)}
    with closing(admin(config)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, wanted)])


def work(config: "Settings", group: str, topic: str, do: Callable[[Any], AcknowledgeType]) -> None:
    """Take records, and acknowledge each with the result of ``do``, as long as the process lives."""
    own = {"group.id": group, "share.acknowledgement.mode": "explicit", "max.poll.records": 1, "log_level": 0}
    with ShareConsumer(confluent_config(config) | own) as worker:
        worker.subscribe([topic])
        while True:
            for record in worker.poll(1.0):
                worker.acknowledge(record, do(record))
                # At once, so that a worker that hangs later holds no record that is done.
                worker.commit_sync()


def acknowledgement(task: str, deliveries: int) -> AcknowledgeType:
    """How a task is acknowledged, by its kind and its number of deliveries."""
    if task == "poison":
        return AcknowledgeType.REJECT
    return AcknowledgeType.RELEASE if task == "again" and deliveries == 1 else AcknowledgeType.ACCEPT


def main(group: str, topic: str, name: str) -> None:
    """Run a worker that reports each task on standard output, one JSON object per line."""

    def do(record: Any) -> AcknowledgeType:
        task, deliveries = json.loads(record.value()), record.delivery_count()
        hangs = task["task"] == "hang" and deliveries == 1
        event = "hangs" if hangs else acknowledgement(task["task"], deliveries).name.lower()
        line = {"event": event, "worker": name, "n": task["n"], "task": task["task"], "deliveries": deliveries}
        print(json.dumps(line), flush=True)
        threading.Event().wait(None if hangs else WORK_SECONDS)
        return acknowledgement(task["task"], deliveries)

    end_with_parent()
    work(settings.load(), group, topic, do)


if __name__ == "__main__":
    main(*sys.argv[1:])
