"""What a part of the stack is: how it is prepared, started, asked for its health, and settled once healthy."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import SecretStr

from lockstep.settings import Settings


@dataclass(frozen=True)
class Launch:
    """The process that a part becomes.

    Args:
        argv: the command. Never holds a secret.
        env: what is added to the environment that it inherits.
        user: the account it runs as, when the stack runs as root.
        keep_open: file descriptors that it inherits (a lease).
    """

    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    user: str | None = None
    keep_open: tuple[int, ...] = ()


def nothing(_settings: Settings) -> None:
    """For a part that has nothing to prepare or settle."""


def never(_settings: Settings) -> bool:
    """For a part that is always the embedded one."""
    return False


@dataclass(frozen=True)
class Part:
    """One part of the stack. Every function is idempotent.

    Args:
        needs: the parts that must be healthy before this one starts.
        check: answers what it found, or raises ``Unhealthy``.
        beat: when it last reported that it lives, for a part that is not asked itself: a report from before its start is
            its forerunner's, and one from before the start of a part that it needs is of one that is gone.
        launch: the process; a part without one is a step, such as a migration.
        answers: what must hold before it can be settled, where ``check`` asks for more.
        prepare: what must exist before the start.
        settle: what is done once it is healthy.
        elsewhere: whether the settings name one that is not ours: it is asked and settled, but not started.
        ports: the settings that hold the ports it listens on.
        megabytes: what it takes at most, roughly; the sum must fit in 8 GB.
        stop_signal: what asks the process to end.
        stop_group: whether its children are asked too, or left to it.
    """

    name: str
    check: Callable[[Settings], str]
    launch: Callable[[Settings], Launch] | None = None
    beat: Callable[[Settings], datetime] | None = None
    answers: Callable[[Settings], str] | None = None
    needs: tuple[str, ...] = ()
    prepare: Callable[[Settings], None] = nothing
    settle: Callable[[Settings], None] = nothing
    elsewhere: Callable[[Settings], bool] = never
    ports: tuple[str, ...] = ()
    megabytes: int = 0
    stop_signal: str = "TERM"
    stop_group: bool = True


def run_dir(settings: Settings) -> Path:
    """Generated configuration, process ids and the supervisor's socket."""
    return settings.home / "run"


def log_file(settings: Settings, part: str) -> Path:
    """What a part writes to its standard output and error."""
    return settings.home / "logs" / f"{part}.log"


def environment(settings: Settings) -> dict[str, str]:
    """The settings as ``LOCKSTEP_*`` variables, so that a child reads the very same. Secrets stay in their file."""
    values = {name: getattr(settings, name) for name in type(settings).model_fields}
    return {
        f"LOCKSTEP_{name.upper()}": str(value)
        for name, value in values.items()
        if value is not None and not isinstance(value, SecretStr)
    }


def inherited(settings: Settings) -> dict[str, str]:
    """The caller's environment with the settings in it.

    ``PYTHONDONTWRITEBYTECODE`` goes: without bytecode on disk, Airflow compiles itself at each start.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | environment(settings) | {"TZ": "UTC", "PYTHONPATH": python_path(settings)}


def python_path(settings: Settings, *folders: Path) -> str:
    """``PYTHONPATH``: these folders, the project's modules (for Airflow's tasks and Spark's Python workers), the caller's."""
    callers = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*map(str, folders), str(settings.project / "spark"), *filter(None, callers)]))
