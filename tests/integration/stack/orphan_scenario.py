"""A supervisor with one service that lives and one that was killed, as an ordinary user; run by ``test_orphans.py``.

A process of its own, because it gives up root, and adopts orphans.
"""

import ctypes
import os
import pwd
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil

from lockstep.stack.orphans import Orphans

PR_SET_DUMPABLE = 4


def become_an_ordinary_user() -> None:
    """After the imports: the account may not be able to read the interpreter's files."""
    if os.geteuid() == 0:
        account = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    # A change of user hides a process until its next `exec`: only the orphan shall be hidden.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def start_service(*, hidden: bool) -> tuple[int, int, int]:
    """Fork a service that forks a process, which forks a child; returns the pids of the three."""
    reader, writer = os.pipe()
    if service := os.fork():
        os.close(writer)
        process, child = os.fdopen(reader).read().split()
        return service, int(process), int(child)
    # Whoever waits for the end of this test's output shall not wait for these.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
    if not os.fork():
        # Signals to the service's process group do not reach it.
        os.setsid()
        if hidden:
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        os.write(writer, f"{os.getpid()}\n".encode())
        if not os.fork():
            os.write(writer, f"{os.getpid()}\n".encode())
    os.close(writer)
    time.sleep(60)
    os._exit(0)


def is_hidden(pid: int) -> bool:
    try:
        Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return True
    return False


def main() -> None:
    become_an_ordinary_user()
    living = start_service(hidden=False)
    killed, process, child = start_service(hidden=True)
    supervisord = SimpleNamespace(options=SimpleNamespace(pidhistory={living[0]: "service"}))
    orphans = Orphans(supervisord)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    names = {process: "process", child: "child"}
    print("hidden:" + ",".join(name for pid, name in names.items() if is_hidden(pid)))
    print("killed:" + ",".join(sorted(names[pid] for pid in orphans.kill())))
    deadline = time.monotonic() + 10
    while any(map(psutil.pid_exists, names)):
        os.waitpid(-1, os.WNOHANG)
        if time.monotonic() > deadline:
            sys.exit("they live on")
        time.sleep(0.01)
    print(f"living:{sum(map(psutil.pid_exists, living))}")
    print(f"left:{len(orphans.kill())}")
    for pid in living:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
