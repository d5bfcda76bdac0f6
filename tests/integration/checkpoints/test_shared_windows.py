"""Views over windows of a stream share a job, and each can be reset, saved, restored and changed as if it had one of its own."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.integration.checkpoints.serving import eventually, job_of, run, serving
from tests.support.tables import rows_of

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints import forks, inspection, resets
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.checkpoints.together import begin_together, plan_together
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.live import generations, progress
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

MINUTE = timedelta(minutes=1)


@pytest.fixture
def pair(stream, view):
    """Views by page, in each minute, and by user, in two minutes of which one begins each minute, which later rows correct."""
    hopping = replace(
        view,
        name=f"hopping_{stream.name[-8:]}",
        by={"user_id": "user_id"},
        columns={
            **{n: view.columns[n] for n in ("window_start", "window_end")},
            "user_id": "STRING",
            "views": "BIGINT",
        },
        key=("window_start", "user_id"),
        column_descriptions={},
        size=2 * MINUTE,
        slide=MINUTE,
        policy="correct",
        correct_within=10 * MINUTE,
    )
    VIEWS[hopping.name] = hopping
    yield view, hopping
    del VIEWS[hopping.name]


@pytest.fixture
def found(spark, settings):
    """The rows of a live view: by the minute of the window, the views of all its rows."""

    def read(view):
        rows = rows_of(spark, settings, f"live.{view.name}")
        return {f"{row['window_start']:%M}": row["views"] for row in sorted(rows, key=lambda row: row["window_start"])}

    return read


# Two page views in each of the minutes 0 to 2, and what the second view says of them.
BY_PAGE, BY_USER = {"00": 2, "01": 2, "02": 2}, {"59": 2, "00": 4, "01": 4, "02": 2}


def test_each_view_has_its_windows_and_its_own_lateness(settings, pair, minutes, shop, found):
    generations.share(settings, pair)
    assert job_of(settings, pair[0]) == job_of(settings, pair[1])
    minutes(range(3))
    shop.view("late", 100, arrives_after=200, page="/")
    shop.view("late", 100, arrives_after=200, page="/")
    shop.flush()
    run(settings, *pair)
    by_page, by_user = pair
    assert found(by_page) == BY_PAGE
    assert found(by_user) == BY_USER | {"00": 5, "01": 5}, "it counts what is late for the other view"


def test_a_view_that_is_reset_leaves_the_job_which_goes_on_with_its_state(spark, settings, pair, minutes, found):
    by_page, by_user = pair
    generations.share(settings, pair)
    minutes(range(3))
    run(settings, *pair)
    resets.reset(settings, resets.plan(spark, settings, by_page, "earliest"), "a test", "tester")
    minutes(range(2, 4))
    run(settings, by_user)
    run(settings, by_page)
    assert job_of(settings, by_page).name == by_page.name
    assert found(by_user) == BY_USER | {"02": 4, "03": 2}
    assert found(by_page) == BY_PAGE | {"03": 2}


def test_a_view_that_measures_something_else_leaves_by_itself_and_goes_on_after_a_reset(
    spark, settings, pair, minutes, found
):
    by_page, by_user = pair
    minutes(range(3))
    with serving(settings, *pair):

        @eventually
        def all_are_there():
            assert found(by_user) == BY_USER

        all_are_there()
    changed = VIEWS[by_page.name] = replace(by_page, measures={"views": "count(*) * 10"})
    elsewhere = replace(by_user, where="page <> '/other'")
    VIEWS[by_user.name] = elsewhere
    with serving(settings, changed, elsewhere):
        minutes(range(3, 4))

        @eventually
        def it_is_alone():
            assert job_of(settings, by_page).name == by_page.name
            assert found(by_user) == BY_USER | {"02": 4, "03": 2}
            assert progress.latest(settings)[by_user.name].error is None

        it_is_alone()
    assert job_of(settings, by_user).is_shared
    resets.reset(settings, resets.plan(spark, settings, changed, "earliest"), "ten times", "tester")
    run(settings, changed)
    assert found(changed) == {"00": 20, "01": 20, "02": 20, "03": 20}


def test_a_view_whose_measure_cannot_be_computed_fails_alone(settings, pair, minutes, shop, found):
    by_page, by_user = pair
    squeamish = VIEWS[by_page.name] = replace(
        by_page, measures={"views": "count(*) + 0 * max(1 DIV (length(page) - 7))"}
    )
    minutes(range(2))
    shop.view("poison", 130, page="/poison")
    shop.flush()
    with serving(settings, squeamish, by_user):

        @eventually
        def the_other_goes_on():
            assert found(by_user) == {"59": 2, "00": 4, "01": 3, "02": 1}
            assert "DIVIDE_BY_ZERO" in (progress.latest(settings)[by_page.name].error or "")
            assert progress.latest(settings)[by_user.name].error is None

        the_other_goes_on()


@pytest.mark.slow
def test_a_savepoint_of_one_view_is_restored_and_forked_with_its_own_state(spark, settings, pair, minutes, found):
    by_page, by_user = pair
    generations.share(settings, pair)
    minutes(range(3))
    run(settings, *pair)
    take_savepoint(spark, settings, generations.get(settings, by_user.name), "three", "tester")
    minutes(range(3, 4))
    run(settings, *pair)
    spark.sql(f"UPDATE live.{by_user.name} SET views = 9")
    assert forks.restore(settings, by_user, "three", "a wrong deployment", "tester").generation == 2
    run(settings, by_user)
    assert found(by_user) == BY_USER | {"02": 4, "03": 2}

    beside = VIEWS[f"{by_user.name}_beside"] = replace(by_user, name=f"{by_user.name}_beside")
    try:
        forks.fork(spark, settings, by_user, beside, "to compare", "tester")
        minutes(range(4, 5))
        run(settings, beside)
        run(settings, by_page)
        assert found(beside) == BY_USER | {"02": 4, "03": 4, "04": 2}
        assert found(by_page) == BY_PAGE | {"03": 2, "04": 2}
        assert found(by_user) == BY_USER | {"02": 4, "03": 2}
    finally:
        del VIEWS[beside.name]


def test_the_state_is_shown_by_view_and_dropped_when_its_time_has_passed(spark, settings, pair, minutes, shop):
    by_page, by_user = pair
    generations.share(settings, pair)
    minutes(range(3))
    run(settings, *pair)
    members = service.members_of(settings, pair)
    assert inspection.state_rows(spark, settings, members) == {by_page.name: 3 + 6, by_user.name: 4 + 6}
    entries = inspection.read_state(spark, settings, by_user, 0, "u1", 10)
    assert {entry["key"]["_view"] for entry in entries} == {by_user.name}

    for hour in (3, 4, 5):
        shop.view(f"later-{hour}", hour * 3600)
        shop.flush()
        run(settings, *pair)
    # The three events, and the windows in which they are.
    assert inspection.state_rows(spark, settings, members) == {by_page.name: 3 + 3, by_user.name: 6 + 3}


@pytest.mark.slow
def test_views_with_jobs_of_their_own_share_one_again_from_gold(spark, settings, stream, pair, minutes, found):
    def batch():
        with connect(settings, "batch") as own:
            ingest(own, settings, stream, "run")
            refine(own, settings, stream, "run")
            for view in pair:
                roll_up(own, settings, view, "run")

    minutes(range(20))
    for view in pair:
        run(settings, view)
    batch()
    planned = plan_together(spark, settings, pair)
    assert {plan.query for plan in planned if plan.since} == {view.name for view in pair}
    begin_together(settings, planned, "both are in order", "tester", "one run")
    minutes(range(20, 22))
    run(settings, *pair)
    assert job_of(settings, pair[0]) == job_of(settings, pair[1])
    assert job_of(settings, pair[0]).is_shared
    assert found(pair[0]) == {f"{minute:02}": 2 for minute in range(22)}
    batch()
    assert [str(reconcile(spark, settings, view, "run").verdict) for view in pair] == ["equal", "equal"]
