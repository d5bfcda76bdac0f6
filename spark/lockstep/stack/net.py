"""Who listens where."""

import socket
from functools import cache

import httpx
import psutil

from lockstep.settings import LOOPBACK
from lockstep.stack.errors import Unhealthy


def reach(host: str, port: int, timeout: float = 2.0) -> None:
    """Open and close a connection.

    Raises:
        Unhealthy: nothing accepts it.
    """
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        raise Unhealthy(f"nothing answers at {host}:{port} ({error})") from error


@cache
def http() -> httpx.Client:
    """The client of the parts' own pages: one for all, as each that is made reads the certificates anew.

    A proxy of the environment is passed by: it does not lead to a loopback.
    """
    return httpx.Client(timeout=10, trust_env=False)


def can_bind(port: int) -> bool:
    """Whether a server could listen on this port of the loopback now."""
    with socket.socket() as probe:
        # As servers do: a connection of a former server that is still being forgotten is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def user_of(port: int) -> psutil.Process | None:
    """The process that has a port: who listens on it, else who has a connection from it; None when we may not know."""
    holders = [found for found in psutil.net_connections(kind="tcp") if found.laddr and found.laddr.port == port]
    holders.sort(key=lambda found: found.status != psutil.CONN_LISTEN)
    pid = next((found.pid for found in holders if found.pid), None)
    return psutil.Process(pid) if pid else None


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
