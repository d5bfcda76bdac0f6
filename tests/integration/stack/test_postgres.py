"""A stack of PostgreSQL alone: quick enough to be stopped, started and removed."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg2
import pytest
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.ports import free_ports

from lockstep import settings as configuration
from lockstep.stack import postgres
from lockstep.stack.errors import StackError
from lockstep.stack.services import environment
from lockstep.stack.stack import Stack


def quiet(_line: str) -> None:
    """Says nothing."""


@contextmanager
def stack_in(directory: Path) -> Iterator[Stack]:
    """A stack with a home of its own, removed in the end."""
    # As root, the server runs as another account, which cannot enter this directory.
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCKSTEP_HOME", str(closed / "home"))
        patch.setenv("LOCKSTEP_POSTGRES_PORT", str(free_ports(1)[0]))
        own = Stack(configuration.load())
        yield own
        own.reset(quiet)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with stack_in(tmp_path) as own:
        yield own


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """For tests that leave it as it is."""
    with stack_in(tmp_path_factory.mktemp("running")) as shared:
        shared.up(["postgres"], quiet)
        yield shared


def lockstep(*arguments: str) -> str:
    """Run the command line on the home of the environment."""
    command = [sys.executable, "-m", "lockstep.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_down_loses_nothing_and_leaves_no_process_and_reset_removes_everything(
    stack: Stack, orphan_process: Callable[[Stack], psutil.Process]
) -> None:
    stack.up(["postgres"], quiet)
    with postgres.connected(stack.settings, "shop") as database, database.cursor() as cursor:
        cursor.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    orphan = orphan_process(stack)
    server = psutil.Process(stack.pid("postgres"))
    lockstep("down")
    assert not orphan.is_running()
    assert not server.is_running()
    assert not stack.supervisor.running()
    assert not stack.health()["postgres"].healthy

    lockstep("up", "postgres")
    with postgres.connected(stack.settings, "shop") as database, database.cursor() as cursor:
        cursor.execute("SELECT answer FROM kept")
        assert cursor.fetchone() == (42,)

    where = postgres.base_dir(stack.settings)
    assert where.exists()
    assert lockstep("reset", "--yes")
    assert not where.exists()
    assert not stack.settings.home.exists()


def test_what_a_killed_service_has_left_behind_ends_before_it_runs_again_and_nothing_else_does(
    stack: Stack, running: Stack, orphan_process: Callable[[Stack], psutil.Process]
) -> None:
    stack.up(["postgres"], quiet)
    of_another_stack = orphan_process(running)
    left = [orphan_process(stack), stuck_backend(stack)]
    killed = psutil.Process(stack.pid("postgres"))
    killed.kill()
    killed.wait(30)
    assert stack.wait_healthy("postgres").pid != killed.pid
    assert [process for process in left if process.is_running()] == []
    assert of_another_stack.is_running()


def stuck_backend(stack: Stack) -> psutil.Process:
    """A session of the server that waits for a program: it does not notice that its server has been killed."""
    pid: Future[int] = Future()

    def wait_for_a_program() -> None:
        with postgres.connected(stack.settings, "shop") as database, database.cursor() as cursor:
            pid.set_result(database.info.backend_pid)
            # The connection ends, or the program is killed first.
            with suppress(psycopg2.Error):
                cursor.execute("COPY (SELECT) TO PROGRAM 'sleep 600'")

    threading.Thread(target=wait_for_a_program, daemon=True).start()
    backend = psutil.Process(pid.result(30))
    Retrying(stop=stop_after_delay(10), wait=wait_fixed(0.05), retry=retry_if_not_result(bool))(backend.children)
    return backend


def test_the_services_of_a_killed_supervisor_end_and_up_starts_them_again(
    stack: Stack, orphan_process: Callable[[Stack], psutil.Process]
) -> None:
    stack.up(["postgres"], quiet)
    server = psutil.Process(stack.pid("postgres"))
    orphan = orphan_process(stack)
    psutil.Process(stack.supervisor.pid()).kill()
    server.wait(30)
    stack.up(["postgres"], quiet)
    assert stack.health()["postgres"].healthy
    orphan.wait(30)
    assert stack.health()["postgres"].healthy


def test_up_twice_leaves_what_runs_alone(running: Stack) -> None:
    before = running.pid("postgres"), running.supervisor.pid(), running.settings.secrets_file.read_text()
    running.up(["postgres"], quiet)
    assert (running.pid("postgres"), running.supervisor.pid(), running.settings.secrets_file.read_text()) == before


def test_no_command_line_shows_a_secret(running: Stack) -> None:
    password = running.settings.postgres_password.get_secret_value()
    tree = psutil.Process(running.supervisor.pid())
    shown = []
    for process in (tree, *tree.children(recursive=True)):
        # A process of PostgreSQL that has just ended shows nothing.
        with suppress(psutil.NoSuchProcess):
            shown.append(" ".join(process.cmdline()))
    assert len(shown) > 1
    assert not [line for line in shown if password in line]


def test_a_wrong_password_is_refused(running: Stack) -> None:
    other = running.settings.model_copy(update={"postgres_password": running.settings.token_key})
    with pytest.raises(postgres.Unhealthy, match="password authentication failed"):
        postgres.check(other)


def test_up_refuses_a_port_in_use_and_starts_nothing(stack: Stack) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", stack.settings.postgres_port))
        server.listen()
        with pytest.raises(StackError, match="LOCKSTEP_POSTGRES_PORT"):
            stack.up(["postgres"], quiet)
    assert not stack.supervisor.running()


def test_a_service_that_does_not_start_is_named_with_the_end_of_its_log(stack: Stack) -> None:
    stack.up(["postgres"], quiet)
    stack.stop("postgres")
    (postgres.data_dir(stack.settings) / "PG_VERSION").write_text("9\n")
    with pytest.raises(StackError) as refused:
        stack.up(["postgres"], quiet)
    assert "postgres does not stay up" in str(refused.value)
    assert "not compatible" in str(refused.value)
    assert "logs/postgres.log" in str(refused.value)


def test_the_environment_that_is_handed_on_is_enough_to_find_the_stack(running: Stack) -> None:
    code = "from lockstep import settings; from lockstep.stack import postgres; print(postgres.check(settings.load()))"
    env = environment(running.settings)
    answer = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout
    assert "PostgreSQL 18" in answer
