"""Opening a session of Spark Connect, and nothing else."""

from typing import Any


def session(remote: str) -> Any:
    """Open a session on the server, which whoever opened it stops: the garbage collector does not."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # It closes the client, whenever the garbage collector comes by, and there waits for threads that wait for a lock of the very
    # call that was interrupted: a process that never ends.
    setattr(ConnectSession, "__del__", lambda _: None)  # noqa: B010
    return SparkSession.builder.remote(remote).create()
