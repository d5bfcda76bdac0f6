"""What the DAGs' tasks do when a part of their work fails or has to wait."""

import logging
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.commits import entry, ledger_record, ranges, write_commit
from tests.support.ops_records import OpsRecords
from tests.support.ports import own_ports

from lockstep import tasks
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.errors import LedgerBroken, SomeFailed
from lockstep.ledger import Entry
from lockstep.quality.gate import GateFailed
from lockstep.quality.outcomes import Outcome
from lockstep.reconcile.run import Report
from lockstep.results import Results
from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that the tasks load: a home of the test's own, and ports that nobody listens on."""
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setenv("LOCKSTEP_VIEWS", "page_views_per_minute")
    return Settings()


def report(view: str, unexplained: int) -> Report:
    verdict = "unexplained" if unexplained else "equal"
    return Report(view, cast(Any, verdict), None, windows=7, unexplained=unexplained, sample="10:00 /cart")


def test_when_live_and_batch_differ_the_task_fails_and_names_the_views() -> None:
    with pytest.raises(tasks.LayersDiffer) as failure:
        tasks.verdicts([report("ad_ctr", 0), report("page_views_per_minute", 2)])
    message = str(failure.value)
    assert message.startswith("Live and batch differ, and no cause is known:")
    assert "page_views_per_minute: 2 of 7 windows, such as 10:00 /cart" in message
    assert "ad_ctr" not in message


def test_when_live_and_batch_agree_the_verdict_of_each_view_is_returned() -> None:
    assert tasks.verdicts([report("ad_ctr", 0)]) == {"ad_ctr": "7 windows equal"}


def test_a_roll_up_waits_for_a_shut_gate(
    settings: Settings,
    ops_records: OpsRecords,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rolled_up: list[str] = []

    def roll_up_each(name: str, work: object, views: list[View], run_id: str) -> dict[str, Entry]:
        rolled_up.extend(view.name for view in views)
        return {view.name: entry(ranges({0: (0, 10)})) for view in views}

    monkeypatch.setattr(tasks, "for_each", roll_up_each)
    write_commit(settings, "silver.page_views", 1, ledger_record(ranges({0: (0, 10)})), rows=10)
    results = Results()
    with caplog.at_level(logging.WARNING):
        assert tasks.roll_up("run-1", results) == {}
    assert rolled_up == []
    assert "page_views_per_minute waits: silver.page_views has not passed its gate" in caplog.messages
    (row,) = results.as_rows()
    assert (row["table"], row["outcome"]) == ("gold.page_views_per_minute", "waiting")
    # The commit of the test is years old.
    late = "lacks rows of page_views that have been there for more than 600 s"
    assert row["detail"] == f"silver.page_views has not passed its gate; {late}"

    ops_records.write("ops.quality", {"positions": {"silver.page_views": 1}})
    assert tasks.roll_up("run-2", Results()) == {"page_views_per_minute": 10}
    assert rolled_up == ["page_views_per_minute"]


@pytest.mark.parametrize(("ingest_first", "age", "first"), [(True, 5, []), (True, 25, ["ingest"]), (False, 25, [])])
def test_silver_takes_what_was_sent_since_bronze_was_written_where_that_is_a_while_ago(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, ingest_first: bool, age: float, first: list[str]
) -> None:
    steps: list[str] = []

    def note(name: str, *_: object) -> dict[str, Entry]:
        steps.append(name)
        if name == "ingest":
            raise SomeFailed(name, {"clicks": ValueError("it is full")})
        return {}

    monkeypatch.setattr(tasks, "for_each", note)
    monkeypatch.setattr(tasks.bronze, "behind", lambda *_: [CONTRACTS["page_views"]])
    at = int((time.time() - age) * 1000)
    write_commit(settings, "bronze.page_views", 1, ledger_record(ranges({0: (0, 10)})), rows=10, timestamp=at)
    assert tasks.refine("run-1", Results(), ingest_first) == {}
    assert steps == [*first, "refine"], "what ingest could not do is for its own DAG to say"


def test_a_gate_without_new_rows_checks_nothing(settings: Settings, ops_records: OpsRecords) -> None:
    assert tasks.gate("silver", "run-1", Results()) == {}


@pytest.mark.parametrize("is_shut", [False, True])
def test_readers_get_the_tables_that_have_passed_also_when_the_gate_of_another_is_shut(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, is_shut: bool
) -> None:
    published: list[str] = []

    def run_gates(*_: object) -> list[Outcome]:
        if is_shut:
            raise GateFailed([])
        return []

    monkeypatch.setattr(tasks.readiness, "unchecked", lambda *_: ["gold.page_views_per_minute"])
    monkeypatch.setattr(tasks, "connect", lambda *_: nullcontext())
    monkeypatch.setattr(tasks, "run_gates", run_gates)
    monkeypatch.setattr(tasks.merged, "publish", lambda _, __, views: published.extend(view.name for view in views))
    with pytest.raises(GateFailed) if is_shut else nullcontext():
        tasks.gate("gold", "run-1", Results())
    assert published == ["page_views_per_minute"]


def test_a_table_that_cannot_be_read_and_views_that_stay_as_they_were_are_named_together(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = LedgerBroken("version 2 was cut short")

    def run_gates(*_: object) -> list[Outcome]:
        raise GateFailed([], {"gold.ad_ctr": torn})

    def publish(*_: object) -> None:
        raise SomeFailed("Readers see some views as they were before", {"serving.ad_ctr": torn})

    monkeypatch.setattr(tasks.readiness, "unchecked", lambda *_: ["gold.ad_ctr"])
    monkeypatch.setattr(tasks, "connect", lambda *_: nullcontext())
    monkeypatch.setattr(tasks, "run_gates", run_gates)
    monkeypatch.setattr(tasks.merged, "publish", publish)
    results = Results()
    with pytest.raises(GateFailed, match=r"gold\.ad_ctr could not be checked: version 2 was cut short") as failure:
        tasks.gate("gold", "run-1", results)
    assert "serving.ad_ctr: version 2 was cut short" in failure.value.__notes__[0]
    [row] = [row for row in results.as_rows() if row["table"] == "gold.ad_ctr"]
    assert row["outcome"] == "failed"
