"""What the DAGs' tasks do when a part of their work fails or has to wait."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest
from tests.support.commits import entry, ledger_record, ranges, write_commit
from tests.support.ports import own_ports

from lockstep import tasks
from lockstep.contracts import CONTRACTS, Contract
from lockstep.ledger import Entry
from lockstep.reconcile.run import Report
from lockstep.settings import Settings
from lockstep.tasks import TaskFailed

STREAMS = [CONTRACTS[name] for name in ("clicks", "page_views", "searches", "sensors")]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that the tasks load: a home of the test's own, and ports that nobody listens on."""
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setenv("LOCKSTEP_VIEWS", "page_views_per_minute")
    return Settings()


@dataclass
class Sessions:
    """Sessions of no server; ``opened`` counts them."""

    opened: int = 0

    @contextmanager
    def connect(self, *_: object) -> Iterator[Any]:
        self.opened += 1
        yield object()


def for_each(work: Any, sessions: Sessions, streams: list[Contract] = STREAMS) -> dict[str, int]:
    return tasks.for_each("ingest", work, streams, "run-1", sessions.connect)


def ten_rows(spark: Any, settings: Settings, stream: Contract, run_id: str) -> Entry | None:
    return entry(ranges({0: (0, 10)}))


def test_each_item_is_worked_on_once_and_its_new_rows_are_counted(settings: Settings) -> None:
    worked_on: list[str] = []

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> Entry | None:
        worked_on.append(stream.name)
        return None if stream.name == "clicks" else ten_rows(spark, settings, stream, run_id)

    assert for_each(work, Sessions()) == {"page_views": 10, "searches": 10, "sensors": 10}
    assert sorted(worked_on) == sorted(stream.name for stream in STREAMS)


def test_one_stream_that_fails_does_not_stop_the_others_and_is_named(settings: Settings) -> None:
    worked_on: list[str] = []

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> Entry | None:
        worked_on.append(stream.name)
        if stream.name in ("clicks", "searches"):
            raise ValueError(f"the topic of {stream.name} is gone")
        return ten_rows(spark, settings, stream, run_id)

    with pytest.raises(TaskFailed) as failure:
        for_each(work, Sessions())
    assert sorted(worked_on) == sorted(stream.name for stream in STREAMS)
    message = str(failure.value)
    assert "ingest: 2 failed, the others are done" in message
    assert "clicks: the topic of clicks is gone" in message
    assert "searches: the topic of searches is gone" in message
    assert "page_views" not in message


def test_two_items_are_worked_on_at_once_in_sessions_of_their_own(settings: Settings) -> None:
    sessions, both_at_work = Sessions(), Barrier(2)

    def work(spark: Any, settings: Settings, stream: Contract, run_id: str) -> Entry | None:
        both_at_work.wait(10)
        return None

    assert for_each(work, sessions) == {}
    assert sessions.opened == 2


def test_without_an_item_no_session_is_opened(settings: Settings) -> None:
    sessions = Sessions()
    assert for_each(ten_rows, sessions, []) == {}
    assert sessions.opened == 0


def report(view: str, unexplained: int) -> Report:
    verdict = "unexplained" if unexplained else "equal"
    return Report(view, cast(Any, verdict), None, windows=7, unexplained=unexplained, sample="10:00 /cart")


def test_when_live_and_batch_differ_the_task_fails_and_names_the_views() -> None:
    with pytest.raises(TaskFailed) as failure:
        tasks.verdicts([report("ad_ctr", 0), report("page_views_per_minute", 2)])
    message = str(failure.value)
    assert message.startswith("Live and batch differ, and no cause is known:")
    assert "page_views_per_minute: 2 of 7 windows, such as 10:00 /cart" in message
    assert "ad_ctr" not in message


def test_when_live_and_batch_agree_the_verdict_of_each_view_is_returned() -> None:
    assert tasks.verdicts([report("ad_ctr", 0)]) == {"ad_ctr": "7 windows equal"}


def test_a_roll_up_waits_for_a_shut_gate(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rolled_up: list[str] = []
    monkeypatch.setattr(tasks, "for_each", lambda *given: rolled_up.extend(view.name for view in given[2]))
    write_commit(settings, "silver.page_views", 1, ledger_record(ranges({0: (0, 10)})), rows=10)
    with caplog.at_level(logging.WARNING):
        tasks.roll_up("run-1")
    assert rolled_up == []
    assert "page_views_per_minute waits: silver.page_views has not passed its gate" in caplog.messages

    write_commit(settings, "ops.quality", 1, {"seq": 1, "verdicts": {}, "positions": {"silver.page_views": 1}})
    tasks.roll_up("run-2")
    assert rolled_up == ["page_views_per_minute"]


def test_a_gate_without_new_rows_checks_nothing(settings: Settings) -> None:
    assert tasks.gate("silver", "run-1") == {}
