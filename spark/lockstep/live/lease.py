"""One query for each checkpoint: a lock that lives as long as the query does.

It is taken inside the Spark server, by the process that writes the query's micro-batches, so that it outlives the service that
started the query, and goes when the query ends, however it ends.
"""

import os
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psycopg2

from lockstep.control import leases
from lockstep.errors import LeaseHeld

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

WAIT_SECONDS = 15
_LOOK_SECONDS = 1
# The stack too: it closes the connection when nobody holds it any more.
_held: "dict[str, tuple[Connection, ExitStack]]" = {}


def hold(settings: "Settings", query: str) -> None:
    """Take the query's lease for the life of this process, or see that it still has it.

    Raises:
        LeaseHeld: another query writes from a checkpoint of this name; the message names its process.
    """
    if query in _held and _alive(_held[query][0]):
        return
    if not _held:
        _end_with_the_server()
    with ExitStack() as stack:
        connection = _take(stack, settings, query, f"pid {os.getpid()}")
        _held[query] = connection, stack.pop_all()


def _end_with_the_server() -> None:
    """End this process when the server that has started it is gone.

    In the midst of a batch it would try to reach the server for minutes, and hold the lease against the query's successor.
    """
    parent, never = os.getppid(), threading.Event()

    def watch() -> None:
        while os.getppid() == parent:
            never.wait(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-the-server", daemon=True).start()


def free(settings: "Settings", query: str) -> None:
    """See that nobody holds the query's lease; one that has just been stopped is waited for.

    Raises:
        LeaseHeld: a query runs on it.
    """
    with ExitStack() as stack:
        _take(stack, settings, query, "start")


def _take(stack: ExitStack, settings: "Settings", query: str, who: str) -> "Connection":
    try:
        return stack.enter_context(leases.lease(settings, f"checkpoint:{query}", who, WAIT_SECONDS))
    except LeaseHeld as error:
        raise LeaseHeld(
            f"{query}: another query runs on its checkpoint, so this one was not let in. Stop that one, or the service that "
            f"started it. ({error})"
        ) from None


def _alive(connection: "Connection") -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except psycopg2.Error:
        return False
    return True
