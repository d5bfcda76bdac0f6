"""One query per checkpoint: a lock that lives as long as the query does.

The process that writes the query's micro-batches takes the lock. That process runs inside the Spark server, so the lock
outlives the service that started the query. The lock ends when the query ends, however it ends.
"""

import os
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
# By query, the connection that holds its lock. The stack is kept too, because it closes the connection when it is collected.
_leases: "dict[str, tuple[Connection, ExitStack]]" = {}


def acquire(settings: "Settings", query: str) -> None:
    """Take the query's lease for the life of this process, or check that this process still has it.

    Raises:
        LeaseHeld: another query writes from the checkpoint; the message names its process.
    """
    if query in _leases and _is_open(_leases[query][0]):
        return
    if not _leases:
        # In the middle of a batch, this process would try for minutes to reach a server that is gone, and keep the lease.
        end_with_parent()
    with ExitStack() as stack:
        connection = _lock(stack, settings, query, f"pid {os.getpid()}")
        _leases[query] = connection, stack.pop_all()


def ensure_free(settings: "Settings", query: str) -> None:
    """Check that no query holds the lease. Wait a little for one that was just stopped.

    Raises:
        LeaseHeld: a query runs on the checkpoint; the message names its process.
    """
    with ExitStack() as stack:
        _lock(stack, settings, query, "start")


def _lock(stack: ExitStack, settings: "Settings", query: str, holder: str) -> "Connection":
    try:
        return stack.enter_context(leases.lease(settings, f"checkpoint:{query}", holder, WAIT_SECONDS))
    except LeaseHeld as error:
        raise LeaseHeld(
            f"{query}: another query runs on its checkpoint, so this one was not started. Stop the other one, or the service "
            f"that started it. ({error})"
        ) from None


def _is_open(connection: "Connection") -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except psycopg2.Error:
        return False
    return True
