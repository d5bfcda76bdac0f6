"""Start a Python process of Spark's server, but let the sink of a live query connect to the server before it imports anything.

Spark waits ten seconds for the connection, whatever is configured (``PythonWorkerFactory``, seen in 4.1.4), and its own worker
connects after its imports. They take a CPU second: beside twenty others that want two cores, more than ten seconds. Then the
query fails, is started again, and fails again.

The connection goes to a fork of :mod:`lockstep.sink_server`, which has imported all of it already. This process lives as long as
the fork, because Spark ends a sink by ending the process that it has started. Where that server does not answer, this process
becomes the sink itself.

Run as ``python -IS connect_first.py PYTHON ARGUMENTS``: it takes the place of ``PYTHON ARGUMENTS``, and imports next to nothing.
"""

import os
import socket
import struct
import sys

_SINK = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
_LENGTH = struct.Struct("!i")
# In the directory of the stack's files, where Spark's server runs. A path from there is short enough for the kernel.
_FORKS = "run/sinks.sock"


def connected(port: int, secret: bytes) -> socket.socket:
    """Connect, log in and say who this is, as Spark's worker does.

    Raises:
        ConnectionError: the server refuses the secret.
    """
    server = socket.create_connection(("127.0.0.1", port))
    server.sendall(_LENGTH.pack(len(secret)) + secret)
    (length,) = _LENGTH.unpack(server.recv(_LENGTH.size, socket.MSG_WAITALL))
    if server.recv(length, socket.MSG_WAITALL) != b"ok":
        raise ConnectionError("Spark's server has refused the secret of its Python process")
    server.sendall(_LENGTH.pack(os.getpid()))
    return server


def forked(server: socket.socket) -> bool:
    """Give the connection to a fork, with this process's environment and output, and wait for its end; whether there was one."""
    variables = b"\0".join(name + b"=" + value for name, value in os.environb.items())
    with socket.socket(socket.AF_UNIX) as fork:
        try:
            fork.connect(_FORKS)
        except OSError:
            return False
        descriptors = [server.fileno(), sys.stdout.fileno(), sys.stderr.fileno()]
        socket.send_fds(fork, [_LENGTH.pack(len(variables))], descriptors)
        fork.sendall(variables)
        server.close()
        # It says nothing: this ends with the connection.
        fork.recv(1)
    return True


def main(python: str, *arguments: str) -> None:
    """Become the process that was asked for."""
    port, secret = os.environ.get("PYTHON_WORKER_FACTORY_PORT"), os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    if arguments[-1:] == (_SINK,) and port and secret:
        server = connected(int(port), secret.encode())
        if forked(server):
            return
        server.set_inheritable(True)
        arguments = ("-m", "lockstep.sink_worker", str(server.detach()))
    os.execv(python, [python, *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
