"""Work on several streams or views at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from structlog.contextvars import bound_contextvars, get_contextvars
from tests.support.ports import own_ports

from lockstep.contracts import CONTRACTS, Contract
from lockstep.errors import SomeFailed
from lockstep.for_each import for_each
from lockstep.settings import Settings

STREAMS = [CONTRACTS[name] for name in ("clicks", "page_views", "searches", "sensors")]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home of the test's own, and ports that nobody listens on."""
    own_ports(monkeypatch, tmp_path)
    return Settings()


@dataclass
class Sessions:
    """Sessions of no server; ``opened`` counts them."""

    opened: int = 0

    @contextmanager
    def connect(self, *_: object) -> Iterator[Any]:
        self.opened += 1
        yield object()


def worked(work: Any, sessions: Sessions, streams: list[Contract] = STREAMS) -> dict[str, int]:
    return for_each("ingest", work, streams, "run-1", sessions.connect)


def ten(spark: Any, settings: Settings, stream: Contract, run_id: str) -> int | None:
    return 10


def test_each_item_is_worked_on_once_and_its_result_is_returned(settings: Settings) -> None:
    worked_on: list[str] = []

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> int | None:
        worked_on.append(stream.name)
        return None if stream.name == "clicks" else ten(spark, settings, stream, run_id)

    assert list(worked(work, Sessions()).items()) == [("page_views", 10), ("searches", 10), ("sensors", 10)]
    assert sorted(worked_on) == sorted(stream.name for stream in STREAMS)


def test_one_stream_that_fails_does_not_stop_the_others_and_is_named(settings: Settings) -> None:
    worked_on: list[str] = []

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> int | None:
        worked_on.append(stream.name)
        if stream.name in ("clicks", "searches"):
            raise ValueError(f"the topic of {stream.name} is gone")
        return ten(spark, settings, stream, run_id)

    with pytest.raises(SomeFailed) as failure:
        worked(work, Sessions())
    assert sorted(worked_on) == sorted(stream.name for stream in STREAMS)
    message = str(failure.value)
    assert "ingest: 2 failed, the others are done" in message
    assert "clicks: the topic of clicks is gone" in message
    assert "searches: the topic of searches is gone" in message
    assert "page_views" not in message


def test_two_items_are_worked_on_at_once_in_sessions_of_their_own(settings: Settings) -> None:
    sessions, both_at_work = Sessions(), Barrier(2)

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> int | None:
        both_at_work.wait(10)
        return None

    assert worked(work, sessions) == {}
    assert sessions.opened == 2


def test_no_more_items_are_worked_on_at_once_than_the_caller_says(settings: Settings) -> None:
    sessions = Sessions()
    assert len(for_each("reconcile", ten, STREAMS, "run-1", sessions.connect, at_once=1)) == len(STREAMS)
    assert sessions.opened == 1


def test_without_an_item_no_session_is_opened(settings: Settings) -> None:
    sessions = Sessions()
    assert worked(ten, sessions, []) == {}
    assert sessions.opened == 0


def test_the_log_lines_of_a_stream_have_its_name_the_step_and_the_run(settings: Settings) -> None:
    fields: dict[str, dict[str, Any]] = {}

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> None:
        fields[stream.name] = get_contextvars()

    with bound_contextvars(run_id="run-1"):
        worked(work, Sessions())
        assert get_contextvars() == {"run_id": "run-1"}
    assert fields == {s.name: {"run_id": "run-1", "step": "ingest", "stream": s.name} for s in STREAMS}
