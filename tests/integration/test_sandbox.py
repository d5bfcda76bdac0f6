"""What a process in a sandbox may do. The process is real, and so is the kernel."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

# Restricts itself, and then tries what the arguments say.
PROGRAM = """
import encodings.idna, socket, sys
from pathlib import Path
from lockstep.thrift.sandbox import Sandbox
readable, writable, connects, action, subject = sys.argv[1:]
Sandbox((Path(readable),), Path(writable), connects == "True").apply()
if action == "read":
    Path(subject).read_text()
elif action == "write":
    Path(subject).write_text("x")
elif action == "remove":
    Path(subject).unlink()
elif action == "environment":
    Path(f"/proc/{subject}/environ").read_bytes()
elif action == "connect":
    socket.create_connection(("127.0.0.1", int(subject))).close()
"""


@pytest.fixture
def attempt(tmp_path):
    """Try something in a sandbox: None, or why it was refused."""
    for name in ("readable", "writable", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("a")

    def attempt(action: str, subject: object, connects: bool = False) -> str | None:
        directories = (str(tmp_path / "readable"), str(tmp_path / "writable"))
        command = [sys.executable, "-c", PROGRAM, *directories, str(connects), action, str(subject)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stderr.strip().splitlines()[-1] if done.returncode else None

    return attempt


def test_it_reads_what_it_may_read_and_writes_what_it_may_write(attempt, tmp_path):
    readable, writable, others = (tmp_path / name / "file" for name in ("readable", "writable", "others"))
    assert attempt("read", readable) is None
    assert attempt("read", writable) is None
    assert "PermissionError" in attempt("read", others)
    assert attempt("write", writable) is None
    assert attempt("write", writable.with_name("new")) is None
    for file in (readable, readable.with_name("new"), others):
        assert "PermissionError" in attempt("write", file)
    assert "PermissionError" in attempt("remove", readable)
    assert readable.read_text() == others.read_text() == "a"


def test_it_connects_to_others_only_where_that_is_asked_for(attempt):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "PermissionError" in attempt("connect", port)
        assert attempt("connect", port, connects=True) is None


def test_it_does_not_see_the_variables_of_other_processes(attempt):
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            # Until it runs, it has no variables.
            other.stdout.readline()
            assert Path(f"/proc/{other.pid}/environ").read_bytes()
            assert "PermissionError" in attempt("environment", other.pid)
        finally:
            other.kill()
