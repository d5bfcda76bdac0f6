"""Start a Python process of Spark's server, but let the sink of a live query connect to the server before it imports anything.

Spark waits ten seconds for the connection, whatever is configured (``PythonWorkerFactory``, seen in 4.1.1), and its own worker
connects after its imports. They take a CPU second: beside twenty others that want two cores, more than ten seconds. Then the
query fails, is started again, and fails again.

Run as ``python -IS connect_first.py PYTHON ARGUMENTS``: it takes the place of ``PYTHON ARGUMENTS``, and imports next to nothing.
"""

import os
import socket
import struct
import sys

_SINK = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
_LENGTH = struct.Struct("!i")


def connected(port: int, secret: bytes) -> int:
    """Connect, log in and say who this is, as Spark's worker does; the descriptor, which the next program inherits.

    Raises:
        ConnectionError: the server refuses the secret.
    """
    server = socket.create_connection(("127.0.0.1", port))
    server.sendall(_LENGTH.pack(len(secret)) + secret)
    (length,) = _LENGTH.unpack(server.recv(_LENGTH.size, socket.MSG_WAITALL))
    if server.recv(length, socket.MSG_WAITALL) != b"ok":
        raise ConnectionError("Spark's server has refused the secret of its Python process")
    server.sendall(_LENGTH.pack(os.getpid()))
    server.set_inheritable(True)
    return server.detach()


def main(python: str, *arguments: str) -> None:
    """Become the process that was asked for."""
    port, secret = os.environ.get("PYTHON_WORKER_FACTORY_PORT"), os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    if arguments[-1:] == (_SINK,) and port and secret:
        arguments = ("-m", "lockstep.sink_worker", str(connected(int(port), secret.encode())))
    os.execv(python, [python, *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
