"""What a run says of its marts, in a file that another process reads while it is written."""

import os
import time

import pytest

from lockstep.marts.progress import Box, Kind, Progress, Reader, State, file_of, remove_old
from lockstep.settings import Settings

ORDERS, TESTS = Box("daily_orders", Kind.RUN), Box("daily_orders", Kind.TEST)
DAY = ("2026-11-25T00:00:00+00:00", "2026-11-26T00:00:00+00:00")


@pytest.fixture
def progress(settings: Settings) -> Progress:
    return Progress(file_of(settings, "marts", "scheduled__2026-11-26T05:00:00+00:00"))


def test_a_reader_gets_each_line_once_and_none_before_it_is_whole(progress: Progress) -> None:
    assert progress.file
    reader = Reader(progress.file)
    assert [*reader.new()] == []
    progress.say("one")
    assert [line.text for line in reader.new()] == ["one"]
    progress.say("two", TESTS)
    whole = progress.file.read_bytes()
    progress.file.write_bytes(whole[:-5])
    assert [*reader.new()] == []
    progress.file.write_bytes(whole)
    assert [(line.text, line.box) for line in reader.new()] == [("two", TESTS)]
    assert [*reader.new()] == []


def test_what_is_worst_over_all_days_and_tests_counts(progress: Progress) -> None:
    for state in (State.SKIPPED, State.SUCCESS, State.FAILED, State.SUCCESS):
        progress.found(TESTS, state)
    progress.found(ORDERS, State.SUCCESS)
    assert progress.states == {TESTS: State.FAILED, ORDERS: State.SUCCESS}


def test_the_days_of_a_run_are_published_as_the_last_build_of_them_says(progress: Progress) -> None:
    assert progress.spans() == {}
    progress.built(DAY, ["daily_funnel"])
    assert progress.spans() == {DAY: False}
    Progress(progress.file).built(DAY)
    assert progress.spans() == {DAY: True}


def test_a_run_that_is_not_airflows_leaves_no_file(settings: Settings) -> None:
    quiet = Progress()
    quiet.say("logged")
    quiet.built(DAY)
    assert quiet.spans() == {}


def test_runs_of_two_dags_and_a_run_of_any_name_have_files_of_their_own(settings: Settings) -> None:
    files = {file_of(settings, dag, run) for dag in ("marts", "rollup_daily") for run in ("a/../b", "a")}
    assert len(files) == 4
    assert {file.parent.parent for file in files} == {settings.home / "dbt" / "runs"}


def test_what_airflow_has_forgotten_is_removed(settings: Settings, progress: Progress) -> None:
    progress.say("old")
    newer = Progress(file_of(settings, "marts", "newer"))
    newer.say("new")
    assert progress.file
    assert newer.file
    long_ago = time.time() - settings.airflow_hours * 3600 - 60
    os.utime(progress.file, (long_ago, long_ago))
    remove_old(settings)
    assert (progress.file.exists(), newer.file.exists()) == (False, True)
