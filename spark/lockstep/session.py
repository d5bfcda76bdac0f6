"""Thin clients of the one warm Spark Connect server."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.client import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@contextmanager
def connect(settings: "Settings", name: str, session_id: str | None = None) -> "Iterator[SparkSession]":
    """Open a session of its own on the server, in UTC and with the lake's tables in its catalog, and close it at the end.

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
    spark = session(remote)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    if not lake.registered(spark):
        from lockstep.catalog import derive

        derive(spark, settings)
    try:
        yield spark
    finally:
        spark.release_session_on_close = session_id is None
        spark.stop()
