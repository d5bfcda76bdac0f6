"""Keyed views share a job, and each can be reset, saved, restored, forked and broken as if it had one of its own."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from tests.integration.checkpoints.serving import eventually, job_of, run, serving
from tests.support.tables import rows_of

from lockstep import lake, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints import forks, inspection, overview, resets
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.checkpoints.together import begin_together, plan_together
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.live import generations, progress
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

COLUMNS = {"user_id": "STRING", "event_id": "STRING", "number": "BIGINT"}
TWO, FOUR = range(1, 3), range(1, 5)


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"user_id": event.data["user_id"], "event_id": event.data["event_id"], "number": number}]


def doubled(state, event):
    """Number them, and say twice the number too."""
    number, rows = numbered(state, event)
    return number, [row | {"twice": 2 * number} for row in rows]


def squeamish(state, event):
    """Number them too, but fail at one page."""
    if event.data["page"] == "/poison":
        raise ValueError("poison")
    return numbered(state, event)


@pytest.fixture
def pair(stream) -> Iterator[tuple[Keyed, Keyed]]:
    """Two views over the stream: the second fails at the page ``/poison``."""
    read = Input(stream.name, "user_id", ("event_id", "user_id", "page"))
    first = Keyed(
        name=f"first_{stream.name[-8:]}",
        columns=COLUMNS,
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(read,),
        process=numbered,
    )
    second = replace(first, name=f"second_{stream.name[-8:]}", process=squeamish)
    VIEWS.update({first.name: first, second.name: second})
    yield first, second
    del VIEWS[first.name], VIEWS[second.name]


class Visits:
    """Sends a page view for each number, in its own minute, and lets time pass to its end."""

    def __init__(self, shop):
        self.shop, self.second = shop, 0.0

    def __call__(self, numbers, **fields):
        for number in numbers:
            self.shop.view(f"e{number}", number * 60, **fields)
        self.second = numbers[-1] * 60 + 30.0
        self.time_passes()

    def time_passes(self):
        """Heartbeats, a little later: a query that has just started looks at its timers when something arrives."""
        self.second += 0.1
        self.shop.heartbeat(self.second)
        self.shop.flush()


@pytest.fixture
def visit(shop):
    return Visits(shop)


@pytest.fixture
def numbers(spark, settings):
    """The numbers of a live view's rows, in the order of the events."""

    def read(view):
        rows = rows_of(spark, settings, f"live.{view.name}")
        return [row["number"] for row in sorted(rows, key=lambda row: row["at"])]

    return read


def test_views_that_come_later_share_the_next_job(settings, pair):
    later = [replace(view, name=f"{view.name}_later") for view in pair]
    generations.share(settings, pair)
    generations.share(settings, [*pair, later[0]])
    assert job_of(settings, later[0]).name == later[0].name, "one that is alone has a job of its own"
    generations.share(settings, [*pair, *later])
    jobs = [job_of(settings, view) for view in (*pair, *later)]
    assert jobs[0] == jobs[1]
    assert jobs[2] == jobs[3]
    assert jobs[3].number > jobs[0].number


def test_a_view_that_is_reset_leaves_the_job_and_both_go_on(spark, settings, pair, visit, numbers):
    first, second = pair

    @eventually
    def both_have(of_first, of_second):
        visit.time_passes()
        assert (numbers(first), numbers(second)) == ([*of_first], [*of_second])

    visit(TWO)
    with serving(settings, *pair):
        both_have(TWO, TWO)
        assert job_of(settings, first) == job_of(settings, second)
        spark.sql(f"UPDATE live.{first.name} SET number = 9")
        spark.sql(f"UPDATE live.{second.name} SET number = 9")
        resets.reset(settings, resets.plan(spark, settings, first, "earliest"), "a test", "tester")
        visit(range(3, 5))
        both_have(FOUR, [9, 9, 3, 4])

        @eventually
        def each_has_its_own_progress():
            latest = progress.latest(settings)
            assert [latest[view.name].generation for view in pair] == [2, 1]
            assert [latest[view.name].lag for view in pair] == [0, 0]

        each_has_its_own_progress()
    assert str(job_of(settings, first)) == f"{first.name}/2"
    own, shared = overview.overview(settings, pair)
    assert (own.job, shared.job) == ("", str(job_of(settings, second)))


def test_a_view_that_fails_leaves_the_job_and_continues_when_it_is_mended(settings, pair, visit, numbers):
    first, second = pair
    visit(TWO)

    @eventually
    def all_are_there(view, expected):
        visit.time_passes()
        assert numbers(view) == [*expected]

    with serving(settings, *pair):
        all_are_there(second, TWO)
        visit([3], page="/poison")
        visit([4])
        all_are_there(first, FOUR)

        @eventually
        def it_fails_alone():
            visit.time_passes()
            latest = progress.latest(settings)
            assert (latest[first.name].error, latest[first.name].generation) == (None, 1)
            assert "poison" in (latest[second.name].error or "")
            assert latest[second.name].generation == 2

        it_fails_alone()
    mended = replace(second, process=numbered)
    VIEWS[second.name] = mended
    with serving(settings, first, mended):
        all_are_there(mended, FOUR)
    assert numbers(first) == [*FOUR]


@pytest.mark.slow
def test_a_savepoint_of_one_view_is_restored_and_forked_with_its_own_state(spark, settings, pair, visit, numbers):
    first, _ = pair
    generations.share(settings, pair)
    visit(TWO)
    run(settings, *pair)
    take_savepoint(spark, settings, generations.get(settings, first.name), "two", "tester")
    visit(range(3, 5))
    run(settings, *pair)
    spark.sql(f"UPDATE live.{first.name} SET number = 9")
    assert forks.restore(settings, first, "two", "a wrong deployment", "tester").generation == 2
    run(settings, first)
    assert numbers(first) == [*FOUR], "what came after the savepoint is counted once, with the state of the savepoint"

    beside = replace(first, name=f"{first.name}_beside")
    VIEWS[beside.name] = beside
    try:
        forks.fork(spark, settings, first, beside, "to compare", "tester")
        visit([5])
        run(settings, beside)
        assert numbers(beside) == [*FOUR, 5]
        assert numbers(first) == [*FOUR]
    finally:
        del VIEWS[beside.name]


@pytest.mark.slow
def test_a_fork_may_have_a_column_more_and_goes_on_with_the_state(spark, settings, pair, visit, numbers):
    first, _ = pair
    generations.share(settings, pair)
    visit(TWO)
    run(settings, *pair)
    wider = replace(first, name=f"{first.name}_wider", columns=COLUMNS | {"twice": "BIGINT"}, process=doubled)
    VIEWS[wider.name] = wider
    try:
        forks.fork(spark, settings, first, wider, "a column more", "tester")
        visit([3])
        run(settings, wider)
        assert numbers(wider) == [1, 2, 3]
        rows = rows_of(spark, settings, f"live.{wider.name}")
        assert {row["number"]: row["twice"] for row in rows} == {1: None, 2: None, 3: 6}
    finally:
        del VIEWS[wider.name]


def test_the_state_of_a_shared_job_is_shown_by_view(spark, settings, pair, visit, shop):
    first, second = pair
    generations.share(settings, pair)
    for user in ("u1", "u2", "u3"):
        shop.view(f"of-{user}", 60, user_id=user, page="/a")
    visit([2])
    run(settings, *pair)
    members = service.members_of(settings, pair)
    rows = {store.variable: store.rows for store in inspection.state_stores(spark, settings, first)}
    assert rows["machines"] == 3
    assert inspection.state_rows(spark, settings, members) == dict.fromkeys(
        (first.name, second.name), sum(rows.values())
    )
    entries = inspection.read_state(spark, settings, second, 0, "u2", 10)
    assert {(e["key"]["_view"], e["key"]["_key"]) for e in entries} == {(second.name, "u2")}


def test_a_micro_batch_that_fails_between_two_tables_is_written_once_to_both(settings, pair, visit, numbers):
    first, second = pair
    generations.share(settings, pair)
    visit([1])
    run(settings, *pair)
    table = Path(lake.path(settings, f"live.{second.name}"))
    with connect(settings, "live") as own:
        running = service.start(own, settings, *pair)
        hidden = table.rename(table.with_name("hidden"))
        visit([2])
        with pytest.raises(StreamingQueryException):
            running.processAllAvailable()
        assert numbers(first) == [1, 2], "the first table has the micro-batch"
        hidden.rename(table)

    @eventually
    def both_have_it():
        visit.time_passes()
        assert (numbers(first), numbers(second)) == ([1, 2], [1, 2])

    # The service, and not one start: Spark's Kafka source fails once when it reports on a batch that was run again.
    with serving(settings, *pair):
        both_have_it()
    written = [commit.rows for commit in lake.commits(settings, f"live.{first.name}") if commit.rows]
    assert sum(written) == 2


@pytest.fixture
def rolled_up(settings, stream):
    """Take what Kafka has into silver, and roll these views up."""

    def roll(*views):
        with connect(settings, "batch") as own:
            ingest(own, settings, stream, "run")
            refine(own, settings, stream, "run")
            for view in views:
                roll_up(own, settings, view, "run")

    return roll


@pytest.mark.slow
def test_views_with_jobs_of_their_own_share_one_again_from_gold(spark, settings, pair, visit, numbers, rolled_up):
    first, second = pair
    generations.share(settings, pair)
    visit(TWO)
    run(settings, *pair)
    resets.reset(settings, resets.plan(spark, settings, first, "earliest"), "a test", "tester")
    with pytest.raises(
        ActionRefused, match=f"gold.{first.name} has no machines.*\n.*gold.{second.name} has no machines"
    ):
        plan_together(spark, settings, pair)
    # Gold has read more for one of them than for the other, and neither has read all.
    rolled_up(first, second)
    visit([3])
    rolled_up(second)
    visit([4])

    plans = plan_together(spark, settings, pair)
    done = begin_together(settings, plans, "both are in order", "tester", "one run")
    again = begin_together(settings, plans, "both are in order", "tester", "one run")
    assert [one.generation for one in done] == [one.generation for one in again] == [3, 2]
    assert job_of(settings, first) == job_of(settings, second)
    assert (job_of(settings, first).name, job_of(settings, first).number > 1) == ("_keyed", True)
    run(settings, *pair)
    assert (numbers(first), numbers(second)) == ([*FOUR], [*FOUR]), "each event once"
    visit([5])
    run(settings, *pair)
    rolled_up(*pair)
    assert (numbers(first), numbers(second)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]), "after a restart too"
    assert [str(reconcile(spark, settings, view, "run").verdict) for view in pair] == ["equal", "equal"]


@pytest.mark.slow
def test_a_view_that_leaves_before_the_first_micro_batch_goes_on_from_gold_alone(
    spark, settings, pair, visit, numbers, rolled_up
):
    first, second = pair
    visit(TWO)
    rolled_up(*pair)
    for view in pair:
        resets.reset(settings, resets.plan(spark, settings, view, "gold"), "a test", "tester")
    begin_together(settings, plan_together(spark, settings, pair), "a test", "tester")
    visit([3])
    forks.separate(spark, settings, generations.get(settings, second.name), second, "it fails")
    for view in pair:
        run(settings, view)
    assert job_of(settings, first).name == "_keyed"
    assert job_of(settings, second).name == second.name
    assert (numbers(first), numbers(second)) == ([1, 2, 3], [1, 2, 3])
