"""The queue way: one worker of a share group. Run as ``python -m shop.readers.share GROUP TOPIC NAME``.

The broker hands each record to one worker, and counts how often. What the worker does with it is the example here:

- most tasks are accepted: done, and never seen again;
- ``again`` is released the first time, and is then given to any worker;
- ``poison`` is rejected: no worker will ever do it, so nobody is asked again;
- ``hang`` hangs its first worker, whose lock on it ends after :data:`LOCK_SECONDS`, or when it dies: another one gets it.
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
from shop.readers.children import die_with_parent

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The broker's smallest.
LOCK_SECONDS = 15
WORK_SECONDS = 0.05


def prepare_group(config: "Settings", group: str) -> None:
    """Have a share group begin at the log's beginning, and take a record back after LOCK_SECONDS without acknowledgement."""
    wanted = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(LOCK_SECONDS * 1000)}
    with closing(admin(config)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, wanted)])


def work(config: "Settings", group: str, topic: str, do: Callable[[Any], AcknowledgeType]) -> None:
    """Take records and acknowledge each with what ``do`` says, for as long as the process lives."""
    own = {"group.id": group, "share.acknowledgement.mode": "explicit", "max.poll.records": 1, "log_level": 0}
    with ShareConsumer(confluent_config(config) | own) as worker:
        worker.subscribe([topic])
        while True:
            for record in worker.poll(1.0):
                worker.acknowledge(record, do(record))
                # At once, so that a worker which hangs later holds nothing that is done.
                worker.commit_sync()


def verdict(task: str, deliveries: int) -> AcknowledgeType:
    """What becomes of a task, by its kind and how often it was handed out."""
    if task == "poison":
        return AcknowledgeType.REJECT
    return AcknowledgeType.RELEASE if task == "again" and deliveries == 1 else AcknowledgeType.ACCEPT


def main(group: str, topic: str, name: str) -> None:
    """Tell on standard output what was taken and what became of it, one JSON object a line."""

    def do(record: Any) -> AcknowledgeType:
        task, deliveries = json.loads(record.value()), record.delivery_count()
        hangs = task["task"] == "hang" and deliveries == 1
        said = "hangs" if hangs else verdict(task["task"], deliveries).name.lower()
        line = {"event": said, "worker": name, "n": task["n"], "task": task["task"], "deliveries": deliveries}
        print(json.dumps(line), flush=True)
        threading.Event().wait(None if hangs else WORK_SECONDS)
        return verdict(task["task"], deliveries)

    die_with_parent()
    work(settings.load(), group, topic, do)


if __name__ == "__main__":
    main(*sys.argv[1:])
