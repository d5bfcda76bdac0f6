"""A home and ports that nobody else uses, for a stack that a test starts."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from lockstep import settings as configuration
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack.stack import Stack

PORTS = [name for name in Settings.model_fields if name.endswith("_port")]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held together until all are known, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]


def own_ports(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Point the settings at the home and at free ports, for this process and its children."""
    patch.setenv("LOCKSTEP_HOME", str(home))
    for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
        patch.setenv(f"LOCKSTEP_{name.upper()}", str(port))


@contextmanager
def started(home: Path) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, on a home and ports of their own, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        own_ports(patch, home)
        running = Stack(configuration.load())
        try:
            running.up(["postgres", "kafka", "spark"])
            yield running
        finally:
            running.reset()
