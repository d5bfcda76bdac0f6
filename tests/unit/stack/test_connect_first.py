"""The sink of a live query connects to Spark's server before anything is imported, and is a fork; other processes just run."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

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
    return subprocess.Popen([*launcher, *arguments], text=True, env=os.environ | env, cwd=python.parent, **pipes)


def place_of(server: socket.socket, secret: str = SECRET) -> dict[str, str]:
    """What Spark tells its Python process: where to connect, and the secret."""
    return {"PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": secret}


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
    with socket.create_server((LOOPBACK, 0)) as server, start(python, "-m", SINK, **place_of(server)) as process:
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


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[psutil.Process]:
    """The server that forks sinks, in the directory of the stack's files."""
    (tmp_path / "run").mkdir()
    place = tmp_path / "run" / "sinks.sock"
    command = [sys.executable, "-m", "lockstep.sink_server"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.1)):
            with attempt:
                assert place.is_socket()
        yield psutil.Process(process.pid)
        process.kill()


def forked(forks: psutil.Process) -> psutil.Process:
    """The one fork that there is, once there is one."""
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.1), reraise=True):
        with attempt:
            (fork,) = forks.children()
    return fork


def test_the_sink_is_a_fork_with_the_connection_the_environment_and_the_output(
    python: Path, forks: psutil.Process
) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        url = {"SPARK_CONNECT_LOCAL_URL": "sc://nobody.invalid:1"}
        with start(python, "-m", SINK, **place_of(server), **url) as process:
            _, connection = as_sparks_server(process, server, b"ok")
            with connection:
                (pid,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
                fork = forked(forks)
                # What Spark sends to its worker first: Python's version, and the session.
                for word in (f"{sys.version_info.major}.{sys.version_info.minor}", "my-session"):
                    connection.sendall(struct.pack("!i", len(word)) + word.encode())
                assert process.stdout
                said = process.stdout.readline()
                assert pid == process.pid
                fork.wait(60)
            process.wait(60)
    assert "is starting with url sc://nobody.invalid:1 and sessionId my-session" in said


def test_a_fork_ends_with_the_process_that_spark_ends(python: Path, forks: psutil.Process) -> None:
    with socket.create_server((LOOPBACK, 0)) as server, start(python, "-m", SINK, **place_of(server)) as process:
        _, connection = as_sparks_server(process, server, b"ok")
        with connection:
            fork = forked(forks)
            process.terminate()
            fork.wait(60)


def test_a_sink_goes_on_without_the_server_that_has_forked_it_and_the_next_one_runs_by_itself(
    python: Path, forks: psutil.Process
) -> None:
    with socket.create_server((LOOPBACK, 0)) as server, start(python, "-m", SINK, **place_of(server)) as first:
        _, connection = as_sparks_server(first, server, b"ok")
        fork = forked(forks)
        forks.kill()
        forks.wait(60)
        with start(python, "-m", SINK, **place_of(server)) as second:
            _, another = as_sparks_server(second, server, b"ok")
            assert second.stdout
            assert "lockstep.sink_worker" in second.stdout.readline()
            second.communicate("\n")
            another.close()
        assert fork.is_running()
        assert first.poll() is None
        connection.close()
        fork.wait(60)


def test_what_sinks_are_forked_from_has_nothing_of_the_project_which_may_change() -> None:
    loaded = "import sys; from lockstep import sink_server; sink_server.load(); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert {"lockstep.live.sink", "deltalake", "pandas"} <= {*said}
    assert [name for name in said if name.split(".")[0] == "shop"] == []


def test_one_whose_secret_is_refused_does_not_run(python: Path) -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        start(python, "-m", SINK, **place_of(server, "wrong")) as process,
    ):
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
