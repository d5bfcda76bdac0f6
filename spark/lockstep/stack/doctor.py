"""Checks before a start: ports, memory, disk, Java, jars and the lease. Each finding says what is wrong and how to fix it."""

import os
import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, lease, net
from lockstep.stack.errors import StackError
from lockstep.stack.java import find_java
from lockstep.stack.services import Service

_NEED_JAVA = {"kafka", "connect", "spark"}
# The jars, the databases, Kafka's files and the lake of a full demo, with room for logs.
_MIN_DISK_BYTES = 3 * 1024**3


@dataclass(frozen=True)
class Finding:
    """The result of one check: its level is ``ok``, ``warning`` (the start goes on) or ``problem`` (it does not)."""

    level: str
    what: str
    fix: str = ""


def examine(settings: Settings, services: list[Service]) -> list[Finding]:
    """Check what these services need before they can start."""
    findings = [*_ports(settings, services), _memory(services), _disk(settings.home)]
    names = {service.name for service in services}
    if names & _NEED_JAVA:
        findings += tools(settings)
    if "spark" in names:
        findings.append(_lease(settings))
    return findings


def tools(settings: Settings) -> list[Finding]:
    """Check Java and the jars."""
    return [_java(), _jars(settings)]


def require(settings: Settings, services: list[Service], say: Callable[[str], None]) -> None:
    """Check what these services need, and print the warnings.

    Raises:
        StackError: there are problems. The message has all of them.
    """
    findings = examine(settings, services)
    for finding in findings:
        if finding.level == "warning":
            say(f"warning: {finding.what}  To fix it: {finding.fix}")
    problems = [finding for finding in findings if finding.level == "problem"]
    if problems:
        # One error has all problems, so that a person can fix them in one go.
        first, *others = problems
        more = "".join(f"\n{other.what}\n  To fix it: {other.fix}" for other in others)
        raise StackError(first.what, first.fix + more)


def _ports(settings: Settings, services: list[Service]) -> list[Finding]:
    findings = []
    for service in services:
        for name in service.ports:
            port = getattr(settings, name)
            if net.can_bind(port):
                findings.append(Finding("ok", f"port {port} is free for {service.name}"))
                continue
            user = net.user_of(port)
            who = f"{user.name()} (pid {user.pid})" if user else "a process that this user may not see"
            what = f"Port {port} of {LOOPBACK}, which {service.name} needs, is used by {who}."
            findings.append(Finding("problem", what, f"stop it, or choose another port with LOCKSTEP_{name.upper()}."))
    return findings


def _java() -> Finding:
    try:
        java = find_java()
    except StackError as error:
        return Finding("problem", error.what, error.fix)
    if java.rejected:
        what = f"{'; '.join(java.rejected)}: Java {java.major} of {java.source} is used instead."
        return Finding("warning", what, "set JAVA_HOME to a JDK 17 or 21, or unset it.")
    return Finding("ok", f"Java {java.major} from {java.source} ({java.executable})")


def _jars(settings: Settings) -> Finding:
    root = jars.directory(settings)
    wrong = jars.broken(root)
    corrupt = [path for path, state in wrong.items() if state == "corrupt"]
    if corrupt:
        what = f"{len(corrupt)} jars are corrupt (their SHA-256 is not the one in infra/jars.lock): "
        what += ", ".join(str(root / path) for path in corrupt[:3])
        return Finding("warning", what, "`lockstep jars` fetches them again; `lockstep up` does so by itself.")
    if wrong:
        return Finding("ok", f"{len(wrong)} jars are not there yet: `lockstep up` fetches them")
    return Finding("ok", f"{len(jars.locked())} jars are as the lock says, in {root}")


def _memory(services: list[Service]) -> Finding:
    needed = sum(service.megabytes for service in services)
    available = available_memory() // 1024**2
    if available < needed:
        what = f"{', '.join(service.name for service in services)} take up to {needed} MB, and {available} MB are available."
        fix = "close other programs, or lower LOCKSTEP_SPARK_MEMORY, LOCKSTEP_KAFKA_MEMORY and LOCKSTEP_CONNECT_MEMORY."
        # Half of it is enough to start. With less, the kernel would kill a service.
        return Finding("problem" if available < needed / 2 else "warning", what, fix)
    return Finding("ok", f"{available} MB of memory are available, up to {needed} MB are needed")


def available_memory() -> int:
    """The memory that is still available, in bytes: of the machine, or of the container that this process runs in."""
    available = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    limit, used = group / "memory.max", group / "memory.current"
    # A container may not use all of the machine's memory.
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        available = min(available, int(text) - int(used.read_text()))
    return int(available)


def _disk(home: Path) -> Finding:
    existing = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if not os.access(existing, os.W_OK):
        return Finding("problem", f"{existing} cannot be written.", "choose another home with LOCKSTEP_HOME.")
    if free < _MIN_DISK_BYTES:
        what = f"{free // 1024**2} MB are free on the disk of {home}; {_MIN_DISK_BYTES // 1024**2} MB are needed."
        return Finding("problem", what, "free some, or choose another home with LOCKSTEP_HOME.")
    return Finding("ok", f"{free // 1024**3} GB are free on the disk of {home}")


def _lease(settings: Settings) -> Finding:
    pid = lease.holder(settings)
    if pid is None:
        return Finding("ok", f"no other Spark server holds the lake {settings.lake}")
    error = lease.refusal(settings, pid)
    return Finding("problem", error.what, error.fix)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log. Empty when there is no log yet."""
    if not path.exists():
        return []
    with path.open(errors="replace") as lines:
        return [line.rstrip() for line in deque(lines, count)]
