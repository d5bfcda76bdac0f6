"""The sink of a live query connects to Spark's server before its process imports anything; other Python processes just run."""

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.resources import resource
from lockstep.settings import LOOPBACK

SINK = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
SECRET = "open sesame"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """In the place of Python: says what it was asked to run and, by its process id, who it is; then it waits for a line."""
    script = tmp_path / "my python"
    script.write_text('#!/bin/sh\necho "$$ $*"\nread _\n')
    script.chmod(0o700)
    return script


def start(python: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-IS", str(resource("infra") / "spark" / "connect_first.py"), str(python)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*launcher, *arguments], text=True, env=os.environ | env, **pipes)


def text(connection: socket.socket) -> str:
    (length,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL).decode()


def as_sparks_server(process: subprocess.Popen[str], server: socket.socket, answer: bytes) -> tuple[str, socket.socket]:
    """Accept the process as Spark does; the secret that it gave, and the connection."""
    server.settimeout(30)
    connection, _ = server.accept()
    secret = text(connection)
    connection.sendall(struct.pack("!i", len(answer)) + answer)
    return secret, connection


def test_the_sink_has_connected_logged_in_and_said_who_it_is_before_python_runs(python: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        env = {"PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": SECRET}
        with start(python, "-m", SINK, **env) as process:
            secret, connection = as_sparks_server(process, server, b"ok")
            with connection:
                (pid,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
                assert process.stdout
                who, *asked = process.stdout.readline().split()
                inherited = str(Path(f"/proc/{pid}/fd/{asked[-1]}").readlink())
                process.communicate("\n")
    assert secret == SECRET
    assert pid == process.pid == int(who)
    assert asked[:-1] == ["-m", "lockstep.sink_worker"]
    assert inherited.startswith("socket:")


def test_one_whose_secret_is_refused_does_not_run(python: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        env = {"PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": "wrong"}
        with start(python, "-m", SINK, **env) as process:
            secret, connection = as_sparks_server(process, server, b"err")
            with connection:
                said, error = process.communicate()
    assert (secret, said) == ("wrong", "")
    assert "has refused the secret" in error


@pytest.mark.parametrize("asked", [["-m", "lockstep.python_daemon", "pyspark.worker"], ["-c", "print('a b')"]])
def test_any_other_process_runs_as_it_was_asked_for(python: Path, asked: list[str]) -> None:
    # Also the daemon of the other workers has these in its environment; nothing listens there.
    env = {"PYTHON_WORKER_FACTORY_PORT": "1", "PYTHON_WORKER_FACTORY_SECRET": SECRET}
    with start(python, *asked, **env) as process:
        said, _ = process.communicate("\n")
    assert said == f"{process.pid} {' '.join(asked)}\n"
