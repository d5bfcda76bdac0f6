"""A home and ports that no other process uses, for a stack that a test starts."""

import fcntl
import json
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from lockstep import settings as configuration
from lockstep.refine import tokens
from lockstep.settings import Settings
from lockstep.stack import net
from lockstep.stack.stack import Stack

FLOW = ["postgres", "kafka", "spark"]
# Each jar is checked against its SHA-256. Verifying the bytecode of 20,000 classes would take a tenth of a server's start.
TRUSTED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# For servers that are killed often: the JVM's second compiler pays off too late for them.
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
# Below those that Linux gives to connections (32768 to 60999), and above those of Lockstep's own settings.
BLOCKS = range(20_000, 32_000, 16)
# The locks of the blocks that this process has.
_HELD: list[IO[str]] = []
PORTS = [name for name in Settings.model_fields if name.endswith("_port")]


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on, and that no other caller gets while this process lives; sixteen at most.

    The kernel gives none of them to a connection: a server that starts later would find its port taken.
    """
    directory = Path(tempfile.gettempdir(), f"lockstep-ports-{os.getuid()}")
    directory.mkdir(exist_ok=True)
    for start in random.SystemRandom().sample(BLOCKS, len(BLOCKS)):
        ports = range(start, start + count)
        file = (directory / str(start)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        if all(map(net.can_bind, ports)):
            _HELD.append(file)
            return [*ports]
        file.close()
    raise RuntimeError(f"all ports from {BLOCKS.start} to {BLOCKS.stop} are in use")


def own_ports(patch: pytest.MonkeyPatch, home: Path, ports: list[int] | None = None, java: str = "") -> None:
    """Point the settings at the home and at these ports, or free ones, for this process and its children.

    Args:
        java: further options for the servers' JVMs.
    """
    patch.setenv("LOCKSTEP_HOME", str(home))
    patch.setenv("JDK_JAVA_OPTIONS", f"{TRUSTED} {java}", prepend=" ")
    for name, port in zip(PORTS, ports or free_ports(len(PORTS)), strict=True):
        patch.setenv(f"LOCKSTEP_{name.upper()}", str(port))


@contextmanager
def started(home: Path, java: str = "", services: Sequence[str] = FLOW) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, or only some of them, on a home and ports of their own, until the block ends.

    Args:
        java: as in ``own_ports``.
    """
    with pytest.MonkeyPatch.context() as patch:
        own_ports(patch, home, java=java)
        running = Stack(configuration.load())
        # A process of Lockstep knows one platform; this one may have known another.
        tokens._settings.cache_clear()
        try:
            running.up(services)
            yield running
        finally:
            tokens._settings.cache_clear()
            running.reset()


@contextmanager
def shared(directory: Path) -> Iterator[Stack]:
    """The same for several processes: the first one starts the stack, and the last one removes it."""
    directory.mkdir(exist_ok=True)
    ports, users = directory / "ports.json", directory / "users"
    with pytest.MonkeyPatch.context() as patch:
        with _locked(directory):
            users.write_text(str(int(users.read_text()) + 1 if users.exists() else 1))
            own_ports(patch, directory / "my home", json.loads(ports.read_text()) if ports.exists() else None)
            # All tests together have more tables than one platform.
            patch.setenv("LOCKSTEP_SPARK_MEMORY", "3g")
            running = Stack(configuration.load())
            ports.write_text(json.dumps([getattr(running.settings, name) for name in PORTS]))
        try:
            with _locked(directory):
                running.up(FLOW)
            yield running
        finally:
            with _locked(directory):
                left = int(users.read_text()) - 1
                users.write_text(str(left))
                if not left:
                    running.reset()


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
