"""What a run has written to a table, by the table's log."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.commits import ledger_record, ranges, write_commit

from lockstep import lake
from lockstep.lineage.written import after, since, written
from lockstep.settings import Settings

STARTED = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
TABLE = "silver.page_views"


def commit(settings: Settings, version: int, start: int, end: int, run_id: str = "run-2", **more: Any) -> None:
    """A commit of the run that took offsets of partition 0, and none of partition 1, a minute after the start."""
    taken = ranges({0: (start, end), 1: (7, 7)})
    record = {**ledger_record(taken, seq=version), "run_id": run_id, **more}
    at = STARTED + timedelta(minutes=1)
    write_commit(settings, TABLE, version, record, rows=end - start, timestamp=int(at.timestamp() * 1000))


def test_a_run_has_written_its_own_commits_and_no_others(settings: Settings) -> None:
    commit(settings, 1, 0, 5, run_id="run-1")
    commit(settings, 2, 5, 9, counts={"silver": 4}, sources={"bronze.page_views": 12})
    facts = written(settings, TABLE, "run-2", since(STARTED))
    assert facts is not None
    assert facts.as_extra() == {
        "version": 2,
        "rows": 4,
        "offsets": {"page_views": {"0": [5, 9]}},
        "counts": {"silver": 4},
        "sources": {"bronze.page_views": 12},
    }


def test_what_an_attempt_committed_before_it_died_is_told_by_the_next(settings: Settings) -> None:
    commit(settings, 1, 0, 5)
    commit(settings, 2, 5, 9)
    facts = written(settings, TABLE, "run-2", since(STARTED))
    assert facts is not None
    assert (facts.version, facts.rows, facts.as_extra()["offsets"]) == (2, 9, {"page_views": {"0": [0, 9]}})


def test_the_days_of_a_mart_are_told_without_offsets(settings: Settings) -> None:
    record = {
        "writer": "dbt",
        "run_id": "run-2",
        "interval": ["2026-11-20", "2026-11-21"],
        "sources": {"silver.x": None},
    }
    write_commit(settings, TABLE, 1, record, rows=3, timestamp=int(STARTED.timestamp() * 1000))
    facts = written(settings, TABLE, "run-2", since(STARTED))
    assert facts is not None
    assert facts.as_extra() == {"version": 1, "rows": 3, "interval": ["2026-11-20", "2026-11-21"]}


def test_a_run_that_wrote_nothing_tells_nothing(settings: Settings) -> None:
    assert written(settings, TABLE, "run-2", since(STARTED)) is None
    commit(settings, 1, 0, 5, run_id="run-1")
    assert written(settings, TABLE, "run-2", since(STARTED)) is None


def test_a_commit_from_before_the_run_is_of_another_run_with_the_same_name(settings: Settings) -> None:
    commit(settings, 1, 0, 5)
    assert written(settings, TABLE, "run-2", since(STARTED + timedelta(days=1))) is None


def test_a_log_that_is_torn_is_no_reason_to_fail(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    commit(settings, 1, 0, 5)
    (Path(lake.path(settings, TABLE)) / "_delta_log" / f"{2:020d}.json").write_text('{"commitInfo": {"times')
    assert written(settings, TABLE, "run-2", since(STARTED)) is None
    assert "What was written to silver.page_views is not known" in caplog.text


def test_what_a_table_had_before_is_not_told_again(settings: Settings) -> None:
    commit(settings, 1, 0, 5)
    commit(settings, 2, 5, 9)
    facts = written(settings, TABLE, "run-2", after(1))
    assert facts is not None
    assert (facts.rows, written(settings, TABLE, "run-2", after(2))) == (4, None)


def test_of_a_topic_it_is_not_known_and_the_task_that_has_written_it_does_not_fail(settings: Settings) -> None:
    assert written(settings, "kafka.results.page_minutes", "run-2", since(STARTED)) is None
