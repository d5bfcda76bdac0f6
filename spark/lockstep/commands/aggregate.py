"""What an aggregate is: the commands that it accepts, the events that they become, and the state that events add up to. Pure.

An aggregate has *entities*, such as accounts. A command is decided against the state of entities, and becomes events. An event
changes the state of each entity that it names: a transfer is one event, of two accounts. All entities that may occur together in
a command have the same *key*, such as their ledger: the key chooses the partition, in which one processor decides.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

# What the platform adds to an event's own fields.
ENVELOPE = ("event_id", "event_time", "command_id")
# Of a command's id, in characters.
LONGEST_ID = 100


class Command(BaseModel):
    """What somebody wants to be done. A subclass has the fields of one kind of command, and ``type``, a literal with a default.

    Args:
        command_id: identifies the command. One that is sent again has the same id, one effect and the same answer.
        expected_version: refuse the command unless the entity has this version: it has changed since the sender looked.
            None: decide it in any case.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command_id: str = Field(default_factory=lambda: str(uuid4()), min_length=1, max_length=LONGEST_ID)
    expected_version: int | None = Field(None, ge=0)

    @property
    def key(self) -> str:
        """What chooses the partition."""
        raise NotImplementedError

    @property
    def entity(self) -> str:
        """The entity whose version is expected."""
        raise NotImplementedError


class Event(BaseModel):
    """What has happened. A subclass has the fields of one kind of event, and ``type``, a literal with a default."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities that the event changes, each once."""
        raise NotImplementedError


class State(BaseModel):
    """The state of one entity: its fields all have defaults, which are the state before the first event."""

    model_config = ConfigDict(frozen=True, extra="forbid")


AnyCommand = TypeVar("AnyCommand", bound=Command)
AnyEvent = TypeVar("AnyEvent", bound=Event)
AnyState = TypeVar("AnyState", bound=State)


@dataclass(frozen=True)
class Rejection:
    """Why a command becomes no event.

    Args:
        reason: a word that programs may compare, such as ``insufficient_funds``.
        detail: a sentence for people.
    """

    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Entity(Generic[AnyState]):
    """An entity at a moment.

    Args:
        state: what its events add up to.
        version: how many events have named it.
        at: the time of the newest of them (UTC); None before the first.
    """

    state: AnyState
    version: int = 0
    at: datetime | None = None


# Gives the state of an entity with the command's key.
Read: TypeAlias = Callable[[str], AnyState]
# The entities by key and name.
Entities: TypeAlias = Mapping[tuple[str, str], Entity[AnyState]]


@dataclass(frozen=True, eq=False)
class Aggregate(Generic[AnyState, AnyCommand, AnyEvent]):
    """How commands become events, and events a state.

    Args:
        name: its topics are ``<name>.commands``, ``.events``, ``.outcomes`` and ``.snapshots``.
        description: what an entity is, in plain sentences.
        initial: the state before the first event.
        commands: the kinds of commands.
        events: the kinds of events. One that was ever written stays readable: new fields have defaults.
        decide: the events that a command becomes, or why it is rejected. Pure: it reads states through its first argument only,
            and no clock. No events: the command is accepted, and changes nothing.
        evolve: the state of an entity after an event that names it. Pure, and never refuses: the event has happened.
        partitions: of each topic. It is fixed with the first command: more partitions would move keys to other processors.
        dedup_window: how long after a command another one with its id is answered as the first one was, by arrival.
        snapshot_every: the number of events of a partition after which its changed entities are saved.
    """

    name: str
    description: str
    initial: AnyState
    commands: tuple[type[AnyCommand], ...]
    events: tuple[type[AnyEvent], ...]
    decide: Callable[[Read[AnyState], AnyCommand], Sequence[AnyEvent] | Rejection]
    evolve: Callable[[AnyState, str, AnyEvent], AnyState]
    partitions: int = 3
    dedup_window: timedelta = timedelta(days=1)
    snapshot_every: int = 10_000

    def topic(self, part: str) -> str:
        """The name of one of its topics."""
        return f"{self.name}.{part}"

    @property
    def problems(self) -> list[str]:
        """Why it cannot run; none for a sound one."""
        kinds: list[type[BaseModel]] = [*self.commands, *self.events]
        untyped = [kind.__name__ for kind in kinds if not isinstance(_type(kind), str)]
        found = [f"{name} needs a field `type`, a Literal with a default" for name in untyped]
        taken = [f"{e.__name__}.{field}" for e in self.events for field in ENVELOPE if field in e.model_fields]
        found += [f"{name} is a name of the platform's: choose another" for name in taken]
        for label, names in (("commands", [*map(_type, self.commands)]), ("events", [*map(_type, self.events)])):
            found += [f"two {label} have the type {name}" for name in {n for n in names if names.count(n) > 1}]
        if self.partitions < 1 or self.snapshot_every < 1:
            found.append("partitions and snapshot_every are at least 1")
        return found

    @cached_property
    def version(self) -> str:
        """12 hex digits over what decides the states that events add up to: the modules of ``evolve`` and of the state."""
        digest = hashlib.sha256()
        for code in sorted({inspect.getfile(self.evolve), inspect.getfile(type(self.initial))}):
            digest.update(Path(code).read_bytes())
        return digest.hexdigest()[:12]

    def event(self, fields: Mapping[str, Any]) -> AnyEvent:
        """The event with these fields; others are left out.

        Raises:
            KeyError: no event has such a ``type``.
        """
        return {_type(kind): kind for kind in self.events}[fields["type"]].model_validate(fields)

    def command(self, fields: Mapping[str, Any]) -> AnyCommand:
        """The command with these fields.

        Raises:
            KeyError: no command has such a ``type``.
            ValueError: a field is missing, unknown or not valid.
        """
        return {_type(kind): kind for kind in self.commands}[fields["type"]].model_validate(fields)

    def after(
        self, entities: Entities[AnyState], key: str, event: AnyEvent, at: datetime
    ) -> Iterator[tuple[tuple[str, str], Entity[AnyState]]]:
        """The entities that an event changes, each with its new state and version.

        Args:
            entities: those that had events before.
            at: the time of the event (UTC).
        """
        for name in event.entities:
            before = entities.get((key, name), Entity(self.initial))
            yield (key, name), Entity(self.evolve(before.state, name, event), before.version + 1, at)


def _type(kind: type[BaseModel]) -> Any:
    field = kind.model_fields.get("type")
    return field.default if field else None
