"""Ports and addresses: which ones answer, which ones are free, and which process has them."""

import socket
from functools import cache

import httpx
import psutil

from lockstep.settings import LOOPBACK
from lockstep.stack.errors import Unhealthy

_SECONDS = 10.0


def reach(host: str, port: int, timeout: float = 2.0) -> None:
    """Check that something accepts connections at an address.

    Raises:
        Unhealthy: nothing accepts it.
    """
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        raise Unhealthy(f"nothing answers at {host}:{port} ({error})") from error


@cache
def http() -> httpx.Client:
    """The HTTP client for the services' own pages. There is one, because each new client reads all certificates again.

    It ignores a proxy of the environment: a proxy does not lead to a loopback.
    """
    return httpx.Client(timeout=_SECONDS, trust_env=False)


def ask(url: str, who: str, seconds: float = _SECONDS) -> httpx.Response:
    """What a service's own page answers.

    Args:
        who: what the error names.
        seconds: how long to wait for it.

    Raises:
        Unhealthy: nothing answers, or the answer is an error.
    """
    try:
        return http().get(url, timeout=seconds).raise_for_status()
    except httpx.HTTPError as error:
        raise Unhealthy(f"{who}: {error}") from error


def can_bind(port: int) -> bool:
    """Whether a server could listen on this port of the loopback now."""
    with socket.socket() as probe:
        # As servers do: connections of an earlier server, which the kernel still remembers, do not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def user_of(port: int) -> psutil.Process | None:
    """The process that listens on a port, or else has a connection from it; None when this user may not see it."""
    connections = [c for c in psutil.net_connections(kind="tcp") if c.laddr and c.laddr.port == port]
    connections.sort(key=lambda connection: connection.status != psutil.CONN_LISTEN)
    pid = next((connection.pid for connection in connections if connection.pid), None)
    return psutil.Process(pid) if pid else None


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
