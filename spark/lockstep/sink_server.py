"""Forks the Python process of each live query's sink from one that has imported what sinks need.

Each would take a CPU second and 75 MB for it, and there is one for each job. ``infra/spark/connect_server.py`` becomes this
process when Spark's server runs, and ``infra/spark/connect_first.py`` asks it for a fork.

Run as ``python -m lockstep.sink_server`` in the directory of the stack's files. It ends when the process that started it has.
"""

import gc
import os
import socket
import struct
import sys
import threading
from importlib import import_module
from pathlib import Path
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

from lockstep import sink_worker

# The sink loads the project's views and contracts itself: those of today.
_MODULES = ("pyspark.sql.connect.streaming.worker.foreach_batch_worker", "lockstep.live.sink")
# As in connect_first.py, which imports nothing of this.
_SOCKET = "run/sinks.sock"
_LENGTH = struct.Struct("!i")


class _Sink(BaseRequestHandler):
    """A sink: it has the connection to Spark's server, the environment and the output of the process that asks for it."""

    request: socket.socket
    server: "SinkServer"

    def handle(self) -> None:
        # Nobody shall wait at it for a fork when the server has ended.
        self.server.socket.close()
        header, (server, *output), _, _ = socket.recv_fds(self.request, _LENGTH.size, 3)
        (length,) = _LENGTH.unpack(header)
        variables = self.request.recv(length, socket.MSG_WAITALL)
        os.environb.clear()
        for name, _, value in (variable.partition(b"=") for variable in variables.split(b"\0")):
            os.environb[name] = value
        for descriptor, standard in zip(output, (1, 2), strict=True):
            os.dup2(descriptor, standard)
            os.close(descriptor)
        threading.Thread(target=self._end_with_it, daemon=True).start()
        sink_worker.run(socket.socket(fileno=server))

    def _end_with_it(self) -> None:
        """Spark ends a sink by ending the process that it has started."""
        self.request.recv(1)
        os._exit(1)


class SinkServer(ForkingMixIn, UnixStreamServer):
    """Listens at a Unix socket, to which only this user can connect."""

    # All jobs may start at the same time, before the modules are imported. And a job is never made to wait for another one's end.
    request_queue_size = 128
    max_children = sys.maxsize
    block_on_close = False

    def server_bind(self) -> None:
        Path(str(self.server_address)).unlink(missing_ok=True)
        before = os.umask(0o077)
        try:
            super().server_bind()
        finally:
            os.umask(before)

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self._parent:
            sys.exit()

    def serve(self) -> None:
        """Fork a sink for each connection, until this process's parent has ended."""
        self._parent = os.getppid()
        load()
        # A sink's collections leave alone what it shares with this process.
        gc.freeze()
        self.serve_forever(poll_interval=1)


def load() -> None:
    """Import what sinks need. It starts no thread of Python's, and no client."""
    for module in _MODULES:
        import_module(module)


if __name__ == "__main__":
    with SinkServer(_SOCKET, _Sink) as server:
        server.serve()
