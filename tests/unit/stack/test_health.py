"""What the stack says of a service, from what its supervisor and the service itself report."""

from datetime import UTC, datetime, timedelta

import pytest

from lockstep import heartbeat
from lockstep.settings import Settings
from lockstep.stack.stack import Health, Stack
from lockstep.stack.supervisor import Process, Supervisor


def live(settings: Settings, monkeypatch: pytest.MonkeyPatch, live: Process, spark: Process) -> Health:
    monkeypatch.setattr(Supervisor, "processes", lambda _: {"spark": spark, "live": live})
    return Stack(settings).health(["live"])["live"]


def running(since: timedelta) -> Process:
    return Process("RUNNING", 1, datetime.now(UTC) - since)


def test_the_live_service_is_healthy_once_the_server_that_runs_has_answered_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    minute = timedelta(minutes=1)
    before = live(settings, monkeypatch, running(minute), running(minute))
    assert (before.state, before.detail) == ("unhealthy", "live has sent no heartbeat since the start of live")
    heartbeat.report(settings)
    assert live(settings, monkeypatch, running(minute), running(minute)).healthy


def test_a_live_service_that_has_not_noticed_that_its_server_was_killed_is_not_healthy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat.report(settings)
    health = live(settings, monkeypatch, running(timedelta(hours=1)), running(-timedelta(minutes=1)))
    assert (health.state, health.detail) == ("unhealthy", "live has sent no heartbeat since the start of spark")


def test_a_start_of_before_the_clock_was_set_back_makes_no_heartbeat_too_old(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(datetime.now(UTC).timestamp())
    info = {"name": "live", "statename": "RUNNING", "pid": 1, "start": now + 3600, "now": now, "description": ""}
    monkeypatch.setattr(Supervisor, "_call", lambda *_: [info, info | {"name": "spark"}])
    heartbeat.report(settings)
    assert Stack(settings).health(["live"])["live"].healthy


def test_a_service_that_has_ended_and_is_started_again_has_not_failed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running(timedelta(hours=1))
    assert live(settings, monkeypatch, Process("EXITED", detail="Nov 22 05:41 AM"), server).state == "starting"
    assert live(settings, monkeypatch, Process("FATAL", detail="Exited too quickly"), server).state == "failed"


def test_what_supervisord_has_given_up_is_started_again_and_nothing_else(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"postgres": "FATAL", "kafka": "STOPPED", "spark": "BACKOFF", "live": "RUNNING"}
    started: list[str] = []
    monkeypatch.setattr(Supervisor, "processes", lambda _: {name: Process(state) for name, state in states.items()})
    monkeypatch.setattr(Supervisor, "start", lambda _, name: started.append(name))
    Stack(settings).start_failed(lambda _: None)
    assert started == ["postgres"]
