"""What a service of the stack is: how it is prepared, started, checked, and configured once it is healthy."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import SecretStr

from lockstep.settings import Settings


@dataclass(frozen=True)
class Launch:
    """The process that a service becomes.

    Args:
        argv: the command. It never holds a secret.
        env: variables that are added to the environment of the launcher.
        cwd: the working directory.
        user: the account that the process runs as when the stack runs as root.
        keep_open: file descriptors that the process inherits (a lease).
        nice: how far the process, and those that it starts, give way to others on a busy machine.
    """

    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    user: str | None = None
    keep_open: tuple[int, ...] = ()
    nice: int = 0


def nothing(_settings: Settings) -> None:
    """The ``prepare`` or ``post_start`` of a service that needs none."""


def never(_settings: Settings) -> bool:
    """The ``external`` of a service that is always the embedded one."""
    return False


@dataclass(frozen=True)
class Service:
    """One service of the stack. Every function is idempotent.

    Args:
        name: its name on the command line, in the logs' file names and in ``docker-compose.yml``.
        check: whether it is healthy: returns what it found, or raises ``Unhealthy``.
        launch: its process. A service without one is a step, such as a migration.
        heartbeat: the time of its last heartbeat, for a service that ``check`` does not ask itself. A heartbeat from before the
            start of its process belongs to the process before. One from before the start of a service that it needs was
            sent while another process was there.
        readiness: what must hold before ``post_start`` can run, where ``check`` asks for more than that.
        needs: the services that must be healthy before this one starts.
        prepare: makes what must exist before the start.
        post_start: configures it once it is ready.
        external: whether the settings name one that is not ours. Such a one is checked and configured, but not started.
        ports: the names of the settings that hold the ports it listens on.
        megabytes: roughly the most memory that it takes. The sum must fit in 8 GB.
        stop_signal: the signal that asks its process to end.
        stop_group: whether its child processes get the signal too. Otherwise it ends them itself.
        on_demand: whether it starts only if somebody names it.
    """

    name: str
    check: Callable[[Settings], str]
    launch: Callable[[Settings], Launch] | None = None
    heartbeat: Callable[[Settings], datetime] | None = None
    readiness: Callable[[Settings], str] | None = None
    needs: tuple[str, ...] = ()
    prepare: Callable[[Settings], None] = nothing
    post_start: Callable[[Settings], None] = nothing
    external: Callable[[Settings], bool] = never
    ports: tuple[str, ...] = ()
    megabytes: int = 0
    stop_signal: str = "TERM"
    stop_group: bool = True
    on_demand: bool = False

    def ready(self, settings: Settings) -> str:
        """Check whether ``post_start`` can run.

        Raises:
            Unhealthy: it cannot, yet.
        """
        return (self.readiness or self.check)(settings)


def run_dir(settings: Settings) -> Path:
    """The directory of generated configuration, process ids and the supervisor's socket."""
    return settings.home / "run"


def log_file(settings: Settings, name: str) -> Path:
    """The file that holds what a service writes to its standard output and error."""
    return settings.home / "logs" / f"{name}.log"


def environment(settings: Settings) -> dict[str, str]:
    """The settings as ``LOCKSTEP_*`` variables, so that a child process reads the same ones. Secrets stay in their file."""
    values = {name: getattr(settings, name) for name in type(settings).model_fields}
    for name in ("notifiers", "databases"):
        values[name] = json.dumps([entry.model_dump(mode="json", by_alias=True) for entry in values[name]])
    return {
        f"LOCKSTEP_{name.upper()}": str(value)
        for name, value in values.items()
        if value is not None and not isinstance(value, SecretStr)
    }


def inherited(settings: Settings) -> dict[str, str]:
    """The environment of this process with the settings in it, for a child process.

    Without ``PYTHONDONTWRITEBYTECODE``: with it, Airflow compiles itself at each start.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # glibc gives each thread a memory arena of its own, and seldom returns memory to the system.
    own = {"TZ": "UTC", "PYTHONPATH": python_path(settings), "MALLOC_ARENA_MAX": "2"}
    return kept | environment(settings) | own


def python_path(settings: Settings, *folders: Path) -> str:
    """``PYTHONPATH``: these folders, the project's modules (for Airflow's tasks and Spark's Python workers), the caller's."""
    callers = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*map(str, folders), str(settings.project / "spark"), *filter(None, callers)]))
