"""The live layer forgets a person too: views begin anew without her, and agree with batch."""

import sys
from datetime import timedelta

import pytest
from pyspark import cloudpickle
from tests.support.erased import left
from tests.support.live import run_live

from lockstep import lake, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import live_of
from lockstep.erase import run, scope
from lockstep.errors import LeaseHeld
from lockstep.live import generations
from lockstep.reconcile.run import reconcile

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "user_id": event.data["user_id"], "number": number}]


@pytest.fixture
def keyed(stream):
    view = Keyed(
        name=f"numbered_{stream.name[-8:]}",
        columns={"event_id": "STRING", "user_id": "STRING", "number": "BIGINT"},
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id", "user_id")),),
        process=numbered,
    )
    VIEWS[view.name] = view
    yield view
    del VIEWS[view.name]


def test_live_views_begin_anew_without_the_person(spark, settings, stream, view, keyed, shop, batch, erase, person):
    def both_layers():
        batch()
        with connect(settings, "task") as session:
            roll_up(session, settings, keyed, "run")
        run_live(settings, view, keyed)

    for number in range(12):
        shop.view(f"e{number}", number * 20, user_id=(person, f"{person}2")[number % 2])
    shop.heartbeat(300)
    shop.flush()
    both_layers()
    take_savepoint(spark, settings, generations.get(settings, keyed.name), "before", "tester")
    assert spark.table(live_of(keyed)).where(f"user_id = '{person}'").count() == 6

    done = erase(person, stream)
    assert left(done.receipt, stream) == []
    assert {spark.table(live_of(of)).count() for of in (view, keyed)} == {0}
    assert [generations.current(settings, of.name) for of in (view, keyed)] == [2, 2]
    jobs = [generations.get(settings, of.name).job.name for of in (view, keyed)]
    assert jobs == [view.shared_job, keyed.shared_job], "views that may share a job do"
    assert "_savepoints" not in lake.directories(settings.lake) or keyed.name not in lake.directories(
        f"{settings.lake}/_savepoints"
    )

    both_layers()
    assert spark.table(live_of(keyed)).where(f"user_id = '{person}'").count() == 0
    assert spark.table(live_of(keyed)).count() == 6
    assert [str(reconcile(spark, settings, of, "run").verdict) for of in (view, keyed)] == ["equal", "equal"]
    assert left(erase(person, stream).receipt, stream) == []
    assert spark.table(live_of(keyed)).count() == 6, "nothing was begun anew the second time"
    assert left(erase(f"{person}2", stream).receipt, stream) == [], "nor has the copy that the generation began with"


def test_an_erasure_is_refused_while_a_live_query_runs(
    spark, settings, stream, view, shop, batch, erase, person, monkeypatch
):
    monkeypatch.setattr("lockstep.erase.run._WAIT_SECONDS", 1)
    shop.view("e1", 1, user_id=person)
    shop.flush()
    batch()
    with connect(settings, "live") as session:
        running = service.start(session, settings, view)
        try:
            running.processAllAvailable()
            assert run.running_queries(settings, scope.of_person([stream], person)) == [view.name]
            with pytest.raises(LeaseHeld, match=f"checkpoint:{view.name}"):
                erase(person, stream)
        finally:
            running.stop()
    assert spark.table(f"bronze.{stream.name}").where("key IS NULL").count() == 0
