"""The decisions of one partition, in memory. No I/O: a transaction that fails throws it away."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic

from lockstep.commands.aggregate import (
    LONGEST_ID,
    Aggregate,
    AnyCommand,
    AnyEvent,
    AnyState,
    Entities,
    Entity,
    Rejection,
)
from lockstep.commands.records import Outcome, Reason, Record, Recorded, Status, partition_of, problems_of

# Of the sentence in an outcome: whatever was sent, its answer fits into a record.
_LONGEST_DETAIL = 1_000


@dataclass
class Partition(Generic[AnyState, AnyCommand, AnyEvent]):
    """What a processor knows: its entities, the commands that it has answered, and the time of the newest one.

    Args:
        entities: by key and name.
        outcomes: by the command's id, the oldest first.
        position: the offset of the next command.
        clock: decisions are never earlier than it, so that the times of events rise.
        changed: the entities that differ from the newest snapshot.
        unsaved: how many events the newest snapshot does not have.
    """

    aggregate: Aggregate[AnyState, AnyCommand, AnyEvent]
    number: int
    entities: dict[tuple[str, str], Entity[AnyState]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    position: int = 0
    clock: datetime | None = None
    changed: set[tuple[str, str]] = field(default_factory=set)
    unsaved: int = 0

    def decide(self, record: Record) -> tuple[str, list[Recorded[AnyEvent]]]:
        """The id of a command, whose outcome is known after this call, and its new events: none, where it was answered before."""
        self.position = record.offset + 1
        at = max(record.at, self.clock or record.at)
        self.clock = at
        try:
            fields = json.loads(record.value)
            command_id = _id_of(fields)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            # Nobody waits for it by an id.
            command_id = record.place
            return self._reject(
                command_id, at, Rejection(Reason.INVALID, f"a JSON object with a command_id: {error!r}")
            )
        if command_id in self.outcomes:
            return command_id, []
        try:
            if _has_nul(fields):
                raise ValueError("a text has the character NUL, which no text of PostgreSQL can have")
            command = self.aggregate.command(fields)
            if record.key != command.key.encode():
                raise ValueError(f"the record's key is not that of the command, which is {command.key!r}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return self._reject(command_id, at, Rejection(Reason.INVALID, problems_of(error)))
        return self._decide(command, at)

    def pass_to(self, at: datetime | None) -> None:
        """Decide nothing earlier than this from now on."""
        if at is not None:
            self.clock = max(at, self.clock or at)

    def forget(self) -> None:
        """Forget the commands whose time of being answered again is over."""
        while self.outcomes and self.clock:
            oldest = next(iter(self.outcomes.values()))
            if self.clock - oldest.at <= self.aggregate.dedup_window:
                return
            del self.outcomes[oldest.command_id]

    def fold(self, recorded: Recorded[AnyEvent]) -> None:
        """Apply an event."""
        self.unsaved += 1
        for name, entity in self.aggregate.after(self.entities, recorded.key, recorded.event, recorded.at):
            self.entities[name] = entity
            self.changed.add(name)

    def saved(self) -> None:
        """Say that a snapshot has everything."""
        self.changed, self.unsaved = set(), 0

    def _decide(self, command: AnyCommand, at: datetime) -> tuple[str, list[Recorded[AnyEvent]]]:
        answer = self._answer(command)
        if isinstance(answer, Rejection):
            return self._reject(command.command_id, at, answer, command)
        events = [
            Recorded(command.key, event, f"{command.command_id}.{n}", at, command.command_id)
            for n, event in enumerate(answer, 1)
        ]
        for recorded in events:
            self.fold(recorded)
        self._keep(command.command_id, at, command, status=Status.ACCEPTED, events=tuple(r.event_id for r in events))
        return command.command_id, events

    def _answer(self, command: AnyCommand) -> Iterable[AnyEvent] | Rejection:
        if partition_of(command.key, self.aggregate.partitions) != self.number:
            return Rejection(
                Reason.WRONG_PARTITION,
                f"the key {command.key!r} belongs to another partition: let the producer use the partitioner murmur2",
            )
        version, expected = self._entity(command.key, command.entity).version, command.expected_version
        if expected is not None and expected != version:
            return Rejection(
                Reason.WRONG_VERSION, f"{command.entity} has the version {version}, and {expected} was expected"
            )
        return self.aggregate.decide(lambda entity: self._entity(command.key, entity).state, command)

    def _reject(
        self, command_id: str, at: datetime, why: Rejection, command: AnyCommand | None = None
    ) -> tuple[str, list[Recorded[AnyEvent]]]:
        detail = why.detail[:_LONGEST_DETAIL].encode(errors="backslashreplace").decode()
        self._keep(command_id, at, command, status=Status.REJECTED, reason=str(why.reason), detail=detail)
        return command_id, []

    def _keep(self, command_id: str, at: datetime, command: AnyCommand | None, **more: Any) -> None:
        about: dict[str, Any] = {"command_id": command_id, "at": at, "partition": self.number}
        if command is not None:
            version = self._entity(command.key, command.entity).version
            about |= {"key": command.key, "entity": command.entity, "version": version}
        self.outcomes[command_id] = Outcome(**about, **more)

    def _entity(self, key: str, name: str) -> Entity[AnyState]:
        return self.entities.get((key, name), Entity(self.aggregate.initial))


def _id_of(fields: Any) -> str:
    """The id of a command.

    Raises:
        KeyError, TypeError, ValueError: it has none that an outcome could name.
    """
    command_id = str(fields["command_id"])
    if len(command_id) > LONGEST_ID:
        raise ValueError(f"it has more than {LONGEST_ID} characters")
    # No UTF-8 has a half of a surrogate pair, which JSON may have.
    command_id.encode()
    return command_id


def _has_nul(value: Any) -> bool:
    """Whether a text in a value of JSON has the character NUL."""
    if isinstance(value, dict):
        return any(map(_has_nul, (*value, *value.values())))
    return any(map(_has_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def fold(
    aggregate: Aggregate[AnyState, AnyCommand, AnyEvent],
    events: Iterable[Recorded[AnyEvent]],
    start: Entities[AnyState] | None = None,
) -> dict[tuple[str, str], Entity[AnyState]]:
    """The entities after these events, which follow those of ``start``."""
    partition = Partition(aggregate, 0, dict(start or {}))
    for recorded in events:
        partition.fold(recorded)
    return partition.entities
