"""Settings with other values than those that the running services were started with."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.settings import Settings
from lockstep.stack import started
from lockstep.stack.readers import FIXED, READ_BY
from lockstep.stack.registry import SERVICES
from lockstep.stack.started import Started

if TYPE_CHECKING:
    from lockstep.stack.stack import Stack

# Their values are not printed: an address may have a token, and a notifier a password.
_PRIVATE = {"notifiers", "webhook_url"}
_OF_SHELL = (
    "it is a secret in the environment, which services get from their supervisor: `lockstep down`, then `lockstep up`"
)


@dataclass(frozen=True)
class ChangedSetting:
    """A setting that a running service was started with another value of.

    Args:
        name: ``LOCKSTEP_<NAME>``.
        values: such as ``600 becomes 900``; of a secret, only that it is another one.
        services: the running services that read it, and must be started again.
        way: what to do, where it cannot be changed while the stack runs.
    """

    name: str
    values: str
    services: tuple[str, ...] = ()
    way: str = ""


def look(stack: "Stack") -> list[ChangedSetting]:
    """What has changed since the services were started that run now. A stack without a supervisor tells nothing."""
    running = [name for name, process in stack.supervisor.processes().items() if process.pid]
    known = {name: found for name in running if (found := started.read(stack.settings, name))}
    return changes(known, Started.of(stack.settings), os.environ)


def changes(known: Mapping[str, Started], now: Started, environ: Iterable[str]) -> list[ChangedSetting]:
    """The settings that differ, in the order of their definition. Pure.

    Args:
        known: by service that runs, what it was started with.
        now: what it would be started with.
        environ: the names of the variables of this process.
    """
    found = (_change(field, known, now, {*environ}) for field in Settings.model_fields)
    return [change for change in found if change]


def _change(field: str, known: Mapping[str, Started], now: Started, environ: set[str]) -> ChangedSetting | None:
    name = f"LOCKSTEP_{field.upper()}"
    value = _value(now, name)
    readers = _readers(field, known.keys())
    differing = {
        service: was for service, start in known.items() if service in readers and (was := _value(start, name)) != value
    }
    if not differing:
        return None
    is_secret = name in now.secrets
    before = next(iter(differing.values()))
    values = (
        "another value" if is_secret or field in _PRIVATE else f"{before or 'nothing'} becomes {value or 'nothing'}"
    )
    if field in FIXED:
        return ChangedSetting(name, values, way=FIXED[field])
    if is_secret and name in environ:
        return ChangedSetting(name, values, way=_OF_SHELL)
    return ChangedSetting(name, values, tuple(service for service in known if service in differing))


def _value(start: Started, name: str) -> str | None:
    return start.secrets.get(name, start.variables.get(name))


def _readers(field: str, running: Collection[str]) -> set[str]:
    if field in FIXED:
        return {*running}
    # Nobody knows what a service of the project reads.
    return {*READ_BY[field], *({*running} - SERVICES.keys())} if READ_BY[field] else set()
