"""Orphan processes, whose parent was killed: supervisord adopts them, and kills them on request.

supervisord loads this module, so it stays small: it imports neither the settings nor a client of a server.
"""

from contextlib import suppress
from typing import Any

import psutil

from lockstep import processes

# The name of the RPC interface in `supervisord.conf`.
NAMESPACE = "orphans"


class Orphans:
    """An RPC interface of supervisord. Its methods run inside of supervisord, so no service starts or ends during a call."""

    def __init__(self, supervisord: Any) -> None:
        self._supervisord = supervisord
        processes.adopt_orphans()

    def kill(self) -> list[int]:
        """Kill every orphan and all that it has started. Returns their pids: an empty list when none is left.

        An orphan is a child of supervisord that supervisord has not started. Every user may read who the parent of a process is.
        An orphan may have a session, a process group and a title of its own, and may have closed its ``/proc`` files to its own
        user, as Airflow's workers do.
        """
        services = self._supervisord.options.pidhistory
        orphans = [child for child in psutil.Process().children() if child.pid not in services]
        killed = [process for orphan in orphans for process in _with_descendants(orphan)]
        for process in killed:
            with suppress(psutil.Error):  # it has ended in the meantime
                process.kill()
        return [process.pid for process in killed]


def _with_descendants(orphan: psutil.Process) -> list[psutil.Process]:
    """None when the orphan has ended, and only waits for supervisord to read its exit code."""
    with suppress(psutil.NoSuchProcess):
        if orphan.status() != psutil.STATUS_ZOMBIE:
            return [*orphan.children(recursive=True), orphan]
    return []


def interface(supervisord: Any) -> Orphans:
    """The factory that ``supervisord.conf`` names."""
    return Orphans(supervisord)
