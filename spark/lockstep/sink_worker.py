"""The Python process in which Spark's server runs the sink of a live query: Spark's own, on a connection that is there already.

``infra/spark/connect_first.py`` has made it. This runs in a fork of :mod:`lockstep.sink_server`, or where there is none, in a
process of its own, which gets the descriptor of the connection.
"""

import os
import socket
import sys
from typing import IO, Any, cast


def run(connection: socket.socket) -> None:
    """Write each micro-batch that the server names, until it closes the connection."""
    from pyspark.sql.connect.streaming.worker.foreach_batch_worker import main

    server = connection.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536")))
    file = cast("IO[Any]", server)
    main(file, file)


if __name__ == "__main__":
    run(socket.socket(fileno=int(sys.argv[1])))
