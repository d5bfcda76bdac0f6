"""What the log tells about an entity: each event, and its state after it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from lockstep.commands.aggregate import Aggregate, AnyCommand, AnyEvent, AnyState, Entity
from lockstep.commands.log import events
from lockstep.commands.records import Recorded, partition_of

if TYPE_CHECKING:
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Step(Generic[AnyState, AnyEvent]):
    """An event of an entity, and the entity after it."""

    recorded: Recorded[AnyEvent]
    entity: Entity[AnyState]


def steps(
    aggregate: Aggregate[AnyState, AnyCommand, AnyEvent], log: Iterable[Recorded[AnyEvent]], key: str, name: str
) -> list[Step[AnyState, AnyEvent]]:
    """The events of an entity, in their order. Pure."""
    found: list[Step[AnyState, AnyEvent]] = []
    entity = Entity(aggregate.initial)
    for one in log:
        if one.key == key and name in one.event.entities:
            entity = dict(aggregate.after({(key, name): entity}, key, one.event, one.at))[key, name]
            found.append(Step(one, entity))
    return found


def at(
    aggregate: Aggregate[AnyState, Any, Any], history: Sequence[Step[AnyState, Any]], moment: datetime
) -> Entity[AnyState]:
    """The entity as it was at a moment (UTC): after all its events up to then, that of the moment included. Pure."""
    return next((s.entity for s in reversed(history) if s.recorded.at <= moment), Entity(aggregate.initial))


def history(settings: "Settings", aggregate: Aggregate[Any, Any, Any], key: str, name: str) -> list[Step[Any, Any]]:
    """The events of an entity that the log has now, from the first one on. It has each write whose outcome was read before."""
    number = partition_of(key, aggregate.partitions)
    return steps(aggregate, (event for _, event in events(settings, aggregate, number)), key, name)
