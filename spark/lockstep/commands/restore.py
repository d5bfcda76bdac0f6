"""What a processor knows when it starts: the newest snapshot of its partition, the events after it, and the newest outcomes."""

from typing import TYPE_CHECKING, Any

from lockstep.commands.aggregate import Aggregate, Entity
from lockstep.commands.decisions import Partition
from lockstep.commands.log import events
from lockstep.commands.records import COMMAND_OFFSET, Outcome, partition_of, read_snapshot
from lockstep.commands.topics import admin, committed, first_since, newest_time

if TYPE_CHECKING:
    from lockstep.settings import Settings

AnyAggregate = Aggregate[Any, Any, Any]


def restore(settings: "Settings", aggregate: AnyAggregate, number: int) -> Partition[Any, Any, Any]:
    """The state of a partition after all that its log has: events, and outcomes."""
    partition = folded(settings, aggregate, number)
    _remember(settings, partition)
    return partition


def now(settings: "Settings", aggregate: AnyAggregate, key: str, name: str) -> Entity[Any]:
    """An entity as it is now. It has each write whose outcome was read before."""
    entities = folded(settings, aggregate, partition_of(key, aggregate.partitions)).entities
    return entities.get((key, name), Entity(aggregate.initial))


def folded(settings: "Settings", aggregate: AnyAggregate, number: int) -> Partition[Any, Any, Any]:
    """The entities of a partition: those of the newest snapshot, and the events after it."""
    snapshots = committed(settings, aggregate.topic("snapshots"), number)
    saved = read_snapshot(aggregate, {record.key: record.value for record in snapshots})
    partition = Partition(aggregate, number, dict(saved.entities))
    for _, event in events(settings, aggregate, number, saved.position):
        partition.fold(event)
    return partition


def _remember(settings: "Settings", partition: Partition[Any, Any, Any]) -> None:
    """Take the outcomes that a command which is sent again may still be answered with, and the position in the commands.

    A group's offsets would not do as the position: Kafka forgets them when no command has come for a week.
    """
    topic, number = partition.aggregate.topic("outcomes"), partition.number
    client = admin(settings)
    newest = newest_time(client, topic, number)
    if newest is None:
        return
    since = newest - partition.aggregate.dedup_window
    records = [*committed(settings, topic, number, first_since(settings, topic, number, since))]
    # The newest may be of a transaction that was aborted, and all others be older than the window.
    for record in records or committed(settings, topic, number):
        partition.position = int(record.headers[COMMAND_OFFSET]) + 1
        partition.clock = max(record.at, partition.clock or record.at)
        outcome = Outcome.model_validate_json(record.value)
        # One that was given again has the time of the first.
        if outcome.at >= since:
            partition.outcomes.setdefault(outcome.command_id, outcome)
