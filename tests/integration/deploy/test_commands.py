"""`lockstep plan` and `lockstep apply` on a stack of its own: settings that have changed, and what removed views have left."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.ports import FLOW, SHORT_LIVED, started
from typer.testing import CliRunner, Result

from lockstep.cli.main import app
from lockstep.definition.registry import VIEWS
from lockstep.stack.stack import Stack

ALL_RIGHT = "Everything runs as the project's files say.\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The servers and the monitor, of a project of which no view runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCKSTEP_VIEWS", "")
        patch.setenv("LOCKSTEP_WEBHOOK_TOKEN", "of the first shell")
        with started(tmp_path_factory.mktemp("home"), java=SHORT_LIVED, services=[*FLOW, "monitor"]) as own:
            yield own


def lockstep(*command: str, code: int = 0, given: str = "") -> str:
    result: Result = CliRunner().invoke(app, [*command], input=given)
    assert result.exit_code == code, result.output
    return result.output


def setting_of(stack: Stack, service: str, name: str) -> str:
    return psutil.Process(stack.pid(service)).environ()[name]


def test_a_purge_is_shown_and_confirmed_before_it_removes_anything(stack):
    lake = Path(stack.settings.lake)
    for directory in ("_machines/gone", "_checkpoints/gone/1", "_savepoints/gone/before"):
        (lake / directory).mkdir(parents=True)
        (lake / directory / "file").write_bytes(b"x" * 2000)
    line = "- view gone: removed for ever: checkpoint gone/1 (2 kB), savepoint before (2 kB), saved machines (2 kB)\n"
    assert lockstep("plan") == ALL_RIGHT
    assert lockstep("plan", "--purge", code=2) == line
    assert lockstep("apply", "--purge", code=1, given="n\n").startswith(line)
    assert lockstep("plan", "--purge", code=2) == line, "nothing was removed"
    assert "view gone: purged" in lockstep("apply", "--purge", "--yes")
    assert [path for path in lake.rglob("gone*") if path.exists()] == []
    assert lockstep("plan", "--purge") == ALL_RIGHT


def test_nothing_is_purged_while_a_file_is_broken(stack, monkeypatch):
    (Path(stack.settings.lake) / "_machines" / "gone_too").mkdir(parents=True)
    monkeypatch.setitem(VIEWS._broken, "spark/shop/views/gone_too.py", "line 3: NameError")
    assert "gone_too.py: refused" in lockstep("plan", "--purge", code=1)
    assert "removed for ever" not in lockstep("apply", "--purge", "--yes", code=1)
    assert (Path(stack.settings.lake) / "_machines" / "gone_too").exists()


def test_a_changed_setting_restarts_its_readers_alone_and_they_keep_it(stack, monkeypatch):
    before = {name: stack.pid(name) for name in (*FLOW, "monitor")}
    assert lockstep("plan") == ALL_RIGHT

    monkeypatch.setenv("LOCKSTEP_MAX_LAG_SECONDS", "900")
    monkeypatch.setenv("LOCKSTEP_KAFKA_MEMORY", "256m")
    planned = lockstep("plan", code=2)
    assert planned == (
        "~ setting LOCKSTEP_MAX_LAG_SECONDS: 600 becomes 900, for monitor\n~ service monitor: is started again\n"
    )
    assert setting_of(stack, "monitor", "LOCKSTEP_MAX_LAG_SECONDS") == "600", "a plan changes nothing"

    assert "monitor: stopped" in lockstep("apply")
    after = {name: stack.pid(name) for name in before}
    assert {name for name in before if before[name] != after[name]} == {"monitor"}
    assert setting_of(stack, "monitor", "LOCKSTEP_MAX_LAG_SECONDS") == "900"
    assert lockstep("plan") == ALL_RIGHT

    killed = psutil.Process(after["monitor"])
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(30)
    stack.wait_healthy("monitor")
    assert setting_of(stack, "monitor", "LOCKSTEP_MAX_LAG_SECONDS") == "900", "its supervisor has that of before"


def test_what_cannot_be_changed_is_named_and_stays(stack, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_MAX_LAG_SECONDS", "900")
    monkeypatch.setenv("LOCKSTEP_STATE_PARTITIONS", "7")
    monkeypatch.setenv("LOCKSTEP_WEBHOOK_TOKEN", "of another shell")
    pids = {name: stack.pid(name) for name in FLOW}
    planned = lockstep("plan")
    assert "! setting LOCKSTEP_STATE_PARTITIONS" in planned
    assert "! setting LOCKSTEP_WEBHOOK_TOKEN: another value: it is a secret in the environment" in planned
    lockstep("apply")
    assert {name: stack.pid(name) for name in FLOW} == pids
