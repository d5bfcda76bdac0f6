"""The records of commands, events, outcomes and snapshots: JSON, with the key's text as the key. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic

from kafka.partitioner.default import murmur2
from pydantic import BaseModel, ConfigDict, ValidationError

from lockstep.commands.aggregate import ENVELOPE, Aggregate, AnyEvent, AnyState, Entities, Entity
from lockstep.commands.errors import LogUnreadable

# The header of an outcome with the offset of its command: a processor begins after the newest one.
COMMAND_OFFSET = "lockstep-command-offset"
# The key of the record that says up to where the snapshot of a partition goes.
POSITION = b"position"


class Status(StrEnum):
    """What became of a command."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why the platform rejects a command; aggregates have reasons of their own."""

    INVALID = "invalid_command"
    WRONG_VERSION = "wrong_version"
    WRONG_PARTITION = "wrong_partition"


class Outcome(BaseModel):
    """The answer to a command.

    Args:
        version: of the command's entity, after the command.
        at: when Kafka took the command (UTC).
        events: the ids of its events.
        partition, after: where its events are: they come before the offset ``after`` of this partition of the topic of events. A
            reader that has read so far has read this write. None: there are none.
    """

    model_config = ConfigDict(frozen=True)

    command_id: str
    key: str = ""
    entity: str = ""
    status: Status
    reason: str = ""
    detail: str = ""
    version: int = 0
    at: datetime
    events: tuple[str, ...] = ()
    partition: int
    after: int | None = None


@dataclass(frozen=True)
class Record:
    """A record of the log: where it is, its bytes, its Kafka timestamp (UTC), and its headers."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    at: datetime
    headers: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it is, as messages name it."""
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True)
class Recorded(Generic[AnyEvent]):
    """An event in the log, with its key, its id, the time of its command, and the command's id."""

    key: str
    event: AnyEvent
    event_id: str
    at: datetime
    command_id: str


@dataclass(frozen=True)
class Saved(Generic[AnyState]):
    """The snapshot of a partition: its entities, after all events before the offset ``position``."""

    entities: Entities[AnyState]
    position: int = 0


def partition_of(key: str, partitions: int) -> int:
    """The partition of a key: the one that Kafka's Java clients choose."""
    return int(murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def event_value(recorded: Recorded[Any]) -> bytes:
    """The value of an event's record: its own fields, and those of the platform, side by side."""
    envelope = (recorded.event_id, recorded.at.isoformat(timespec="milliseconds"), recorded.command_id)
    fields = recorded.event.model_dump(mode="json")
    return json.dumps(dict(zip(ENVELOPE, envelope, strict=True)) | fields).encode()


def read_event(aggregate: Aggregate[Any, Any, AnyEvent], record: Record) -> Recorded[AnyEvent]:
    """The event of a record.

    Raises:
        LogUnreadable: the aggregate knows no such event.
    """
    try:
        fields = json.loads(record.value)
        event_id, at, command_id = (fields[name] for name in ENVELOPE)
        return Recorded(record.key.decode(), aggregate.event(fields), event_id, datetime.fromisoformat(at), command_id)
    except (ValueError, KeyError, TypeError) as error:
        raise LogUnreadable(
            f"The event at {record.place} is none that {aggregate.name} declares ({type(error).__name__}: {error}). What was "
            "once written stays: keep each kind of event, give new fields a default, let no other producer write to the topic."
        ) from error


def snapshot_records(
    aggregate: Aggregate[AnyState, Any, Any],
    entities: Entities[AnyState],
    changed: Iterable[tuple[str, str]],
    position: int,
) -> list[tuple[bytes, bytes]]:
    """The records that make the newest snapshot one of these entities, when those are ``changed`` that differ from it."""
    records = [(json.dumps(name).encode(), _entity_value(entities[name])) for name in sorted(changed)]
    mark = {"position": position, "version": aggregate.version}
    return [*records, (POSITION, json.dumps(mark).encode())]


def read_snapshot(aggregate: Aggregate[AnyState, Any, Any], newest: Mapping[bytes, bytes]) -> Saved[AnyState]:
    """The snapshot that the newest records of each key are. One by another ``evolve`` is none: then the log is folded again."""
    mark = json.loads(newest.get(POSITION, b"{}"))
    if mark.get("version") != aggregate.version:
        return Saved({})
    entities = {}
    for name, value in newest.items():
        if name != POSITION:
            key, entity = json.loads(name)
            entities[key, entity] = _read_entity(aggregate, json.loads(value))
    return Saved(entities, mark["position"])


def problems_of(error: Exception) -> str:
    """Why a command is not valid, in a line. Values are left out, which may be personal."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'command'}: {e['msg']}" for e in error.errors())
    return f"{type(error).__name__}: {error}"


def _entity_value(entity: Entity[Any]) -> bytes:
    at = entity.at.isoformat() if entity.at else None
    return json.dumps({"state": entity.state.model_dump(mode="json"), "version": entity.version, "at": at}).encode()


def _read_entity(aggregate: Aggregate[AnyState, Any, Any], fields: Mapping[str, Any]) -> Entity[AnyState]:
    at = fields["at"] and datetime.fromisoformat(fields["at"])
    return Entity(type(aggregate.initial).model_validate(fields["state"]), fields["version"], at)
