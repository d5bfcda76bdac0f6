"""One writer for each live view: a lock that lives as long as the view's query does.

The process that writes the query's micro-batches takes the locks of all its views. That process runs inside the Spark server,
so they outlive the service that started the query. They end when the query ends, however it ends.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psycopg2

from lockstep.control import leases
from lockstep.errors import LeaseHeld
from lockstep.processes import end_with_parent

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# A query that was just stopped still finishes its micro-batch, which takes a few seconds. Its successor waits longer than that.
WAIT_SECONDS = 15
# The connection that holds the locks of this process, by the views. The stack is kept too, because it closes the connection when
# it is collected.
_leases: "dict[tuple[str, ...], tuple[Connection, ExitStack]]" = {}


def acquire(settings: "Settings", views: Sequence[str]) -> None:
    """Take the leases of the views for the life of this process, or check that this process still has them.

    Raises:
        LeaseHeld: another query writes one of them; the message names its process.
    """
    names = tuple(sorted(views))
    if names in _leases and _is_open(_leases[names][0]):
        return
    if not _leases:
        # In the middle of a batch, this process would try for minutes to reach a server that is gone, and keep the leases.
        end_with_parent()
    with ExitStack() as stack:
        connection = _lock(stack, settings, names, f"pid {os.getpid()}")
        _leases[names] = connection, stack.pop_all()


def ensure_free(settings: "Settings", views: Sequence[str]) -> None:
    """Check that no query holds the lease of one of the views. Wait a little for one that was just stopped.

    Raises:
        LeaseHeld: a query writes one of them; the message names its process.
    """
    with ExitStack() as stack:
        _lock(stack, settings, tuple(sorted(views)), "start")


def _lock(stack: ExitStack, settings: "Settings", views: tuple[str, ...], holder: str) -> "Connection":
    names = [f"checkpoint:{view}" for view in views]
    try:
        return stack.enter_context(leases.lease(settings, names, holder, WAIT_SECONDS))
    except LeaseHeld as error:
        raise LeaseHeld(
            f"{', '.join(views)}: another query runs on its checkpoint, so this one was not started. Stop the other one, or the "
            f"service that started it. ({error})"
        ) from None


def _is_open(connection: "Connection") -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except psycopg2.Error:
        return False
    return True
