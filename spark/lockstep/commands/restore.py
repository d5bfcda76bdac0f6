"""What a processor knows when it starts: the newest snapshot of its partition, the events after it, and the newest outcomes."""

from typing import TYPE_CHECKING, Any

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.decisions import Partition
from lockstep.commands.records import Outcome, read_event, read_snapshot
from lockstep.commands.topics import committed, first_since, newest_time

if TYPE_CHECKING:
    from lockstep.settings import Settings

AnyAggregate = Aggregate[Any, Any, Any]


def restore(settings: "Settings", aggregate: AnyAggregate, number: int) -> Partition[Any, Any, Any]:
    """The state of a partition after all events that the log has."""
    snapshots = committed(settings, aggregate.topic("snapshots"), number)
    saved = read_snapshot(aggregate, {record.key: record.value for record in snapshots})
    partition = Partition(aggregate, number, dict(saved.entities))
    for record in committed(settings, aggregate.topic("events"), number, saved.position):
        partition.fold(read_event(aggregate, record))
    _remember(settings, partition)
    return partition


def _remember(settings: "Settings", partition: Partition[Any, Any, Any]) -> None:
    """Take the outcomes that a command which is sent again may still be answered with."""
    topic = partition.aggregate.topic("outcomes")
    newest = newest_time(settings, topic, partition.number)
    if newest is None:
        return
    since = newest - partition.aggregate.dedup_window
    for record in committed(settings, topic, partition.number, first_since(settings, topic, partition.number, since)):
        outcome = Outcome.model_validate_json(record.value)
        partition.clock = max(record.at, partition.clock or record.at)
        # One that was given again has the time of the first.
        if outcome.at >= since:
            partition.outcomes.setdefault(outcome.command_id, outcome)
