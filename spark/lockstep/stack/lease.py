"""The lake's lease: one Spark server for each lake on a local disk, because Delta's local log store is safe in one JVM only."""

import fcntl
import os
from pathlib import Path
from urllib.parse import urlsplit

from lockstep.settings import Settings
from lockstep.stack.errors import StackError


def lease_file(settings: Settings) -> Path | None:
    """The file that is locked. None for a lake that is not on a local disk: its log store allows several writers."""
    return None if urlsplit(settings.lake).scheme else Path(settings.lake) / ".lease"


def take(settings: Settings) -> int | None:
    """Take the lease for this process, and for the program that it becomes by ``exec``.

    The lock belongs to the open file, so it ends with the process, however the process ends.

    Returns:
        The open file descriptor that holds the lease, or None when the lake needs none.

    Raises:
        StackError: another process holds it; the message names its pid.
    """
    path = lease_file(settings)
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = int(os.read(descriptor, 20) or 0)
        os.close(descriptor)
        raise refusal(settings, pid) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def refusal(settings: Settings, pid: int) -> StackError:
    """The error for a second server on the lake. It names the process that holds the lease."""
    return StackError(
        f"Another Spark server (pid {pid}) holds the lake {settings.lake}: two servers on one local lake lose commits.",
        f"use that server (LOCKSTEP_SPARK_REMOTE), or stop it (`lockstep down` in its home, or `kill {pid}`), "
        "or choose another lake (LOCKSTEP_LAKE).",
    )


def holder(settings: Settings) -> int | None:
    """The pid of the process that holds the lease, or None when it is free."""
    path = lease_file(settings)
    if path is None or not path.exists():
        return None
    with path.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(handle.read().strip() or 0)
    return None
