import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.settings import Settings
from lockstep.stack import doctor, jars, lease
from lockstep.stack.doctor import Finding
from lockstep.stack.errors import StackError
from lockstep.stack.registry import SERVICES
from lockstep.stack.stack import Stack


@pytest.fixture
def occupied() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def problems(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "problem"]


def test_a_port_in_use_names_its_user_and_the_setting(settings: Settings, occupied: int) -> None:
    taken = settings.model_copy(update={"postgres_port": occupied})
    (found,) = problems(doctor.examine(taken, [SERVICES["postgres"]]))
    assert f"Port {occupied}" in found.what
    assert f"(pid {os.getpid()})" in found.what
    assert "LOCKSTEP_POSTGRES_PORT" in found.fix


def test_up_is_stopped_by_all_problems_at_once(settings: Settings, occupied: int) -> None:
    taken = settings.model_copy(update={"postgres_port": occupied, "connect_port": occupied})
    with pytest.raises(StackError) as refused:
        doctor.require(taken, [SERVICES["postgres"], SERVICES["connect"]], lambda _line: None)
    assert "LOCKSTEP_POSTGRES_PORT" in str(refused.value)
    assert "LOCKSTEP_CONNECT_PORT" in str(refused.value)


def test_too_little_memory_is_a_problem_and_scarce_memory_a_warning(settings: Settings) -> None:
    available = doctor.available_memory() // 1024**2
    for factor, level in ((0.01, "ok"), (1.5, "warning"), (3, "problem")):
        service = replace(SERVICES["live"], ports=(), megabytes=int(available * factor))
        found = next(finding for finding in doctor.examine(settings, [service]) if "MB" in finding.what)
        assert found.level == level


def test_a_full_disk_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 9, 1))
    (found,) = problems(doctor.examine(settings, []))
    assert "LOCKSTEP_HOME" in found.fix


def test_a_missing_java_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.stack.java.find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    service = replace(SERVICES["kafka"], ports=())
    (found,) = problems(doctor.examine(settings, [service]))
    assert "No Java 17 or 21" in found.what
    assert "JAVA_HOME" in found.fix


def test_a_wrong_java_home_is_a_warning(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found = doctor.examine(settings, [replace(SERVICES["kafka"], ports=())])
    warning = next(finding for finding in found if finding.level == "warning")
    assert "JAVA_HOME" in warning.what
    assert "JDK 17 or 21" in warning.fix


def test_a_corrupt_jar_is_named_with_what_mends_it(settings: Settings) -> None:
    name = next(iter(jars.locked()))
    jar = jars.directory(settings) / name
    jar.parent.mkdir(parents=True)
    jar.write_text("half a download")
    found = doctor.examine(settings, [replace(SERVICES["kafka"], ports=())])
    warning = next(finding for finding in found if "jars are corrupt" in finding.what)
    assert str(jar) in warning.what
    assert "lockstep jars" in warning.fix


def test_a_second_spark_server_on_the_lake_is_a_problem(settings: Settings) -> None:
    held = lease.take(settings)
    assert held
    (found,) = problems(doctor.examine(settings, [replace(SERVICES["spark"], ports=())]))
    os.close(held)
    assert f"pid {os.getpid()}" in found.what
    assert "LOCKSTEP_LAKE" in found.fix


def test_a_kafka_of_others_that_does_not_answer_is_unhealthy_and_not_started(settings: Settings) -> None:
    stack = Stack(settings.model_copy(update={"kafka": "127.0.0.1:1"}))
    health = stack.health(["kafka"])["kafka"]
    assert (health.state, health.pid) == ("unhealthy", None)
    assert "127.0.0.1:1" in health.detail
    with pytest.raises(StackError, match=r"kafka, which the settings name, does not answer"):
        stack.up(["kafka"], lambda _line: None)
    assert not stack.supervisor.running()
