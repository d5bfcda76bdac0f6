"""The Python process in which Spark's server runs the sink of a live query: Spark's own, on a connection that is there already.

``infra/spark/connect_first.py`` has made it, and starts this with its descriptor.
"""

import os
import socket
import sys
from typing import IO, Any, cast

if __name__ == "__main__":
    from pyspark.sql.connect.streaming.worker.foreach_batch_worker import main

    server = socket.socket(fileno=int(sys.argv[1])).makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536")))
    file = cast("IO[Any]", server)
    main(file, file)
