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
        """Kill every orphan and all that it has started; returns their pids, and an empty list when none is left.

        An orphan is a child of supervisord that supervisord has not started. This asks for no more than the parent's pid of each
        process, which everybody may read. An orphan may have a session, a process group and a title of its own, and may have
        closed its ``/proc`` files to its own user, as Airflow's workers do.
        """
        services = self._supervisord.options.pidhistory
        killed = []
        for orphan in [child for child in psutil.Process().children() if child.pid not in services]:
            with suppress(psutil.Error):  # it has ended in the meantime
                if orphan.status() != psutil.STATUS_ZOMBIE:
                    for process in [*orphan.children(recursive=True), orphan]:
                        process.kill()
                        killed.append(process.pid)
        return killed


def interface(supervisord: Any) -> Orphans:
    """The factory that ``supervisord.conf`` names."""
    return Orphans(supervisord)
