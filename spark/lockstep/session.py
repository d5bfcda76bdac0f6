"""Sessions on the Spark Connect server, which runs all the time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from lockstep import project

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


@cache
def _session_type() -> Any:
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
    from pyspark.sql.connect.session import SparkSession

    _send_code_of_project()

    class Session(SparkSession):
        """PySpark's session, which ends otherwise (``pyspark.sql.connect.session.SparkSession``, seen in pyspark 4.1.4)."""

        def stop(self) -> None:
            """First the client's threads release the results that were read. PySpark closes the session before they do.

            Then the server logs a stack trace for each, and its log has nothing else.
            """
            ExecutePlanResponseReattachableIterator.shutdown()
            super().stop()

        def __del__(self) -> None:
            """Whoever opened the session stops it.

            PySpark's waits for the client's threads. The garbage collector may run it in the middle of a call, which holds the
            lock that those threads wait for: then the process never ends.
            """

    return Session


def _send_code_of_project() -> None:
    """Send the functions of the project to the server with their code.

    Sent by name, a Python worker that has imported the module before it was changed would run the old code, under the new version
    of its definition.
    """
    try:
        package = import_module(project.package())
    except project.ProjectInvalid:
        # A session without a project runs none of its functions.
        return
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]


def open_session(remote: str) -> Any:
    """Open a session on the server (``sc://host:port/;options``). Whoever opens it must stop it."""
    from pyspark.sql.connect.session import SparkSession

    # As PySpark's builder does, which cannot be told to make another class: its functions ask for it.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    session = _session_type()(connection=remote)
    SparkSession._set_default_and_active_session(session)
    return session


def remote(settings: "Settings", user: str, session_id: str | None = None) -> str:
    """The connection string of the server, as Spark writes it, for a user that its UI shows. It contains the token, if any."""
    address, _, parameters = settings.spark_remote.partition("/;")
    given = [parameters] if parameters else []
    if token := settings.spark_token.get_secret_value():
        given.append(f"token={token}")
    given.append(f"user_id={user}")
    if session_id:
        given.append(f"session_id={session_id}")
    return f"{address}/;{';'.join(given)}"


@contextmanager
def connect(settings: "Settings", name: str, session_id: str | None = None) -> "Iterator[SparkSession]":
    """Open a session of its own on the server, in UTC, and close it at the end.

    The transaction id of a MERGE is a setting of the session that runs it, so a session belongs to one writer and one thread.

    Args:
        name: the user that the server's UI shows, such as ``ingest``.
        session_id: a fixed UUID, for a client that wants to find its session again; such a session is left open.
    """
    # PySpark collects timestamps as naive local times: so local time must be UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    spark = open_session(remote(settings, name, session_id))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        yield spark
    finally:
        spark.release_session_on_close = session_id is None
        spark.stop()


def collect(rows: "DataFrame") -> "pa.Table":
    """The rows in Arrow, without asking for their schema first (``DataFrame.toArrow``, seen in pyspark 4.1.4).

    For the schema, the server analyses the whole plan, and then it does so again for the rows. Where little is left to compute,
    that is half of the work.
    """
    table: pa.Table = rows._to_table()[0]  # type: ignore[operator]
    return table


def to_dataframe(spark: "SparkSession", rows: "pa.Table") -> "DataFrame":
    """Rows of Arrow in Spark. There may be none: ``createDataFrame`` refuses that if it gets no schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(rows, from_arrow_schema(rows.schema))
