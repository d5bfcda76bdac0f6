"""Thin clients of the one warm Spark Connect server."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


def open_session(remote: str) -> Any:
    """Open a session on the server, which whoever opened it stops: the garbage collector does not."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # It closes the client, whenever the garbage collector comes by, and there waits for threads that wait for a lock of the very
    # call that was interrupted: a process that never ends.
    setattr(ConnectSession, "__del__", lambda _: None)  # noqa: B010
    return SparkSession.builder.remote(remote).create()


@contextmanager
def connect(settings: "Settings", name: str, session_id: str | None = None) -> "Iterator[SparkSession]":
    """Open a session of its own on the server, in UTC, and close it at the end.

    A session carries the transaction id of the MERGE that it runs, so it belongs to one writer and one thread.

    Args:
        name: the user that the server's UI shows, such as ``ingest``.
        session_id: a fixed UUID, for a client that wants to find its session again; such a session is left open.
    """
    # Timestamps are collected as naive local times: here, local is UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    remote = f"{settings.spark_remote}/;user_id={name}"
    if session_id:
        remote += f";session_id={session_id}"
    spark = open_session(remote)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        yield spark
    finally:
        spark.release_session_on_close = session_id is None
        spark.stop()
