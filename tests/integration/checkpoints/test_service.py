"""The live service switches generations, refuses only the broken query, and publishes the progress of all queries."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.integration.checkpoints.serving import serving

from lockstep.catalog import connect
from lockstep.checkpoints import journal, resets
from lockstep.checkpoints.verify import verify
from lockstep.definition.registry import VIEWS
from lockstep.live import generations, progress
from lockstep.live.checkpoint import Checkpoint
from lockstep.service import log_watch, pace
from lockstep.service.job import session_of


@pytest.fixture
def beside(view):
    """A second view on the same stream, with a job of its own."""
    other = replace(view, name=f"{view.name}_2", state_kept=view.state_kept * 2)
    VIEWS[other.name] = other
    yield other
    del VIEWS[other.name]


eventually = retry(
    wait=wait_fixed(0.5),
    stop=stop_after_delay(90),
    retry=retry_if_exception_type((AssertionError, KeyError)),
    reraise=True,
)


def test_a_service_that_stops_leaves_a_complete_journal(spark, settings, view, minutes):
    minutes(range(3))
    job = generations.get(settings, view.name).job
    checkpoint = Checkpoint(job.location(settings))

    @eventually
    def a_batch_is_finished():
        assert checkpoint.last_batch() is not None

    with serving(settings, view, publish_seconds=3600):
        a_batch_is_finished()
    assert f"commits/{checkpoint.last_batch()}" in journal.digests(settings, job)


def test_the_service_switches_generations_refuses_a_broken_query_and_publishes_progress(
    spark, settings, view, beside, minutes, batch, counts
):
    minutes(range(3))
    batch()

    @eventually
    def both_have_counted():
        latest = progress.latest(settings)
        assert latest[view.name].batch is not None
        assert latest[beside.name].batch is not None
        assert (latest[view.name].lag, latest[view.name].error) == (0, None)
        # Six events for deduplication, and three windows.
        assert latest[view.name].state_rows == 9

    with serving(settings, view, beside):
        both_have_counted()
        spark.sql(f"UPDATE live.{view.name} SET views = 9")
        planned = resets.plan(spark, settings, view, "earliest")
        assert resets.reset(settings, planned, "a test", "tester").generation == 2

        @eventually
        def it_is_computed_again():
            assert counts() == [("10:00", 2), ("10:01", 2), ("10:02", 2)]
            latest = progress.latest(settings)[view.name]
            assert latest.generation == 2
            # The rows are there before the batch is finished, and the journal is of finished batches.
            assert latest.batch is not None

        it_is_computed_again()
    for query in (view, beside):
        generation = generations.get(settings, query.name)
        assert verify(settings, [generation]) == []
        assert "offsets/0" in journal.digests(settings, generation.job), "the journal has the files of finished batches"

    state = next(Path(generations.get(settings, beside.name).location(settings), "state").rglob("1.changelog"))
    state.unlink()
    minutes(range(3, 5))
    with serving(settings, view, beside):

        @eventually
        def one_is_refused_and_the_other_continues():
            assert counts() == [(f"10:0{minute}", 2) for minute in range(5)]
            latest = progress.latest(settings)[beside.name]
            assert latest.error is not None, "the refusal is published after the first rows of the other"
            assert "1.changelog is missing" in latest.error
            assert latest.failures > 0

        one_is_refused_and_the_other_continues()
    rows = spark.table(progress.TABLE.name).where(f"query = '{view.name}' AND batch IS NOT NULL").collect()
    assert rows, "a running query publishes its progress"
    assert all(row["dropped_rows"] == 0 for row in rows)


def test_a_service_that_reloads_adopts_what_is_the_same_starts_what_has_changed_and_stops_what_is_gone(
    spark, settings, view, beside, minutes
):
    changed = replace(view, name=f"{view.name}_3", state_kept=view.state_kept * 3)
    VIEWS[changed.name] = changed

    def runs():
        """The run of each view's query that is active."""
        found = {}
        for own in (view, beside, changed):
            job = generations.get(settings, own.name).job
            with connect(settings, "live", session_of(settings, job)) as session:
                for query in session.streams.active:
                    found[own.name] = str(query.runId)
        return found

    @eventually
    def published(*names):
        assert {name for name in names if progress.latest(settings)[name].batch is not None} == {*names}

    minutes(range(3))
    with serving(settings, view, beside, changed, reloads=True):
        published(view.name, beside.name, changed.name)
    before = runs()
    assert before.keys() == {view.name, beside.name, changed.name}, "the queries run on without a service"
    VIEWS[changed.name] = replace(changed, allowed_lateness=changed.allowed_lateness * 2)
    with serving(settings, view, VIEWS[changed.name]):
        published(view.name)
        after = eventually(lambda: _other_run(runs(), changed.name, before))()
        assert after[view.name] == before[view.name], "it was adopted"
        assert beside.name not in after, "its view is gone"
    del VIEWS[changed.name]
    assert runs() == {}


def _other_run(runs, name, before):
    assert runs[name] != before[name]
    return runs


def test_while_many_records_arrive_queries_that_wait_for_cores_begin_half_as_many_micro_batches(
    settings, view, beside, minutes, batch, counts, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "lockstep.live")
    monkeypatch.setattr(log_watch, "_SECONDS", 0.2)
    monkeypatch.setattr(pace, "LASTING_SECONDS", 1.0)
    # Any load is a high one.
    monkeypatch.setattr(pace, "HIGH", -1.0)
    monkeypatch.setattr(pace, "LOW", -1.0)
    minutes(range(3))
    batch()

    @eventually
    def both_have_another_interval():
        said = {line for line in caplog.messages if "the load is" in line}
        jobs = [generations.get(settings, each.name).job for each in (view, beside)]
        assert said == {f"{job}: the load is high: a micro-batch every 8.0 s" for job in jobs}

    @eventually
    def both_go_on():
        assert counts() == [("10:00", 2), ("10:01", 2), ("10:02", 2), ("10:03", 2)]

    with serving(settings.model_copy(update={"cores": 1}), view, beside):
        both_have_another_interval()
        minutes(range(3, 4))
        both_go_on()
