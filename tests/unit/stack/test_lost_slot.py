"""What is said and done where the source database has lost the slot that keeps changes for Debezium."""

from collections.abc import Callable
from typing import Any

import pytest

from lockstep.settings import Settings
from lockstep.stack import connect_api, connector
from lockstep.stack.connector_config import connector_config
from lockstep.stack.errors import Unhealthy

SOURCE = "7711816228859168352/00000001"
FAILED = {"connector": {"state": "RUNNING"}, "tasks": [{"state": "FAILED", "trace": "no longer available\n"}]}


@pytest.fixture
def debezium(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None, bool], list[str]]:
    """A registered connector that has sent changes up to an LSN, and whether its slot is there; gives what is done to it."""

    def registered(lsn: int | None, has_slot: bool) -> list[str]:
        config, done = connector_config(settings, settings.package, 1, SOURCE), list[str]()
        answers: dict[str, Any] = {
            "": [settings.package],
            f"/{settings.package}/status": FAILED,
            f"/{settings.package}/config": config,
            f"/{settings.package}/offsets": {"offsets": [{"offset": {"lsn": lsn}}] if lsn else []},
        }
        monkeypatch.setattr(connect_api, "get", lambda _, path: answers[path])
        monkeypatch.setattr(connect_api, "registered", lambda *_: config)
        monkeypatch.setattr(
            connect_api, "call", lambda _settings, _name, method, path, *_: done.append(f"{method} {path}")
        )
        monkeypatch.setattr(connector, "source_now", lambda *_: (SOURCE, 1_000))
        monkeypatch.setattr(connector, "current_generation", lambda *_: 1)
        monkeypatch.setattr(connector, "has_slot", lambda *_: has_slot)
        monkeypatch.setattr(connector, "begin_generation", lambda *_: done.append("a new generation"))
        return done

    return registered


def test_a_slot_that_is_gone_is_named_with_what_helps(settings: Settings, debezium: Any) -> None:
    debezium(900, has_slot=False)
    with pytest.raises(Unhealthy, match=r"has lost the replication slot lockstep, .* takes a new snapshot"):
        connector.check(settings)


def test_a_task_that_has_failed_with_its_slot_is_restarted(settings: Settings, debezium: Any) -> None:
    done = debezium(900, has_slot=True)
    with pytest.raises(Unhealthy, match="RUNNING, FAILED no longer available; `lockstep up connect` restarts it"):
        connector.check(settings)
    connector.register(settings)
    assert done == ["POST /restart?includeTasks=true&onlyFailed=true"]


def test_without_its_slot_it_begins_a_new_generation(settings: Settings, debezium: Any) -> None:
    done = debezium(900, has_slot=False)
    connector.register(settings)
    assert done == ["a new generation"]


def test_a_connector_that_has_sent_nothing_yet_has_not_lost_its_slot(settings: Settings, debezium: Any) -> None:
    done = debezium(None, has_slot=False)
    connector.register(settings)
    assert done == ["POST /restart?includeTasks=true&onlyFailed=true"]
