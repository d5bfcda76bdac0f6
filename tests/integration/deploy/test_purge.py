"""A view or a stream whose files are gone is removed for ever, though the purge is killed; added again, it starts as new."""

import itertools
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark import cloudpickle
from tests.support.tables import rows_of

from lockstep import lake, ledger, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.contracts import CONTRACTS
from lockstep.control import intervals, traces
from lockstep.control.database import control
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, late_of, live_of, serving_of
from lockstep.deploy import purge as purging
from lockstep.deploy.purge import PurgeRefused, purge
from lockstep.deploy.remains import Remains, find
from lockstep.errors import LeaseHeld
from lockstep.ingest.bronze import ingest
from lockstep.ingest.offsets import topic_offsets
from lockstep.ledger import archive
from lockstep.live import generations
from lockstep.marts import record as marts
from lockstep.quality import outcomes
from lockstep.quality.outcomes import GateState, Outcome
from lockstep.reconcile.record import last
from lockstep.reconcile.run import reconcile
from lockstep.reconcile.verdict import Verdict
from lockstep.refine.silver import refine
from lockstep.serving import merged

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
MINUTES = 5


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


def numbered_by_ten(state, event):
    """Number them in tens."""
    number = (state or 0) + 10
    return number, [{"event_id": event.data["event_id"], "number": number}]


@pytest.fixture
def pair(stream) -> Iterator[tuple[Keyed, Keyed]]:
    """Two views that share a live job: one will be removed, and the other stays."""
    gone = Keyed(
        name=f"gone_{stream.name[-8:]}",
        columns={"event_id": "STRING", "number": "BIGINT"},
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=numbered,
    )
    kept = replace(gone, name=f"kept_{stream.name[-8:]}")
    VIEWS.update({gone.name: gone, kept.name: kept})
    yield gone, kept
    for view in (gone, kept):
        VIEWS.pop(view.name, None)


def left_of(settings, name) -> Remains | None:
    """What is left of the test's own view or stream, among what other tests have left."""
    return next((left for left in find(settings) if left.name == name), None)


def run_live(settings, *views) -> dict[str, dict[str, int]]:
    """Run the views live until they have everything; their rows by event, by view."""
    with connect(settings, "live") as session:
        generations.share(settings, views)
        query = service.start(session, settings, *views)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return {view.name: numbers(session, settings, live_of(view)) for view in views}


def numbers(spark, settings, table) -> dict[str, int]:
    return {row["event_id"]: row["number"] for row in rows_of(spark, settings, table)}


def pass_gate(spark, settings, table) -> None:
    """Record that all rows of the table have passed their gate, and that the marts know them."""
    version = ledger.latest(settings, table).version
    with outcomes.TABLE.writing(spark, settings, "run") as commit:
        passed = Outcome(table, "suite", (), 5, "true", version, datetime.now(UTC))
        outcomes.write(commit, [passed], GateState.of(commit.newest()), "run")
    with marts.TABLE.writing(spark, settings, "run") as commit:
        before = commit.newest()
        commit.append([], {**before, "positions": {**before.get("positions", {}), table: version}})


@pytest.fixture
def removed(spark, settings, stream, shop, pair):
    """A view that has run in both layers, with all that the platform keeps of one, and whose file is gone."""
    gone, kept = pair
    for minute in range(MINUTES):
        shop.view(f"e{minute}", minute * 60)
    shop.heartbeat(MINUTES * 60)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    for view in pair:
        roll_up(spark, settings, view, "run")
    assert run_live(settings, gone, kept)[gone.name] == {f"e{n}": n + 1 for n in range(MINUTES)}
    take_savepoint(spark, settings, generations.get(settings, gone.name), "before", "tester", "")
    pass_gate(spark, settings, gold_of(gone))
    reconcile(spark, settings, gone, "run")
    with archive.archiving(spark, settings, "run") as take:
        take(gold_of(gone))
    merged.publish(spark, settings, pair)
    del VIEWS[gone.name]
    return gone


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def kill(monkeypatch):
    """Have the purge die after so many steps."""

    def after(steps):
        passed = []

        def failpoint(_name):
            passed.append(_name)
            if len(passed) == steps:
                raise Killed

        monkeypatch.setattr(purging, "failpoint", failpoint)

    return after


def purged_with_kills(spark, settings, left, kill) -> int:
    """Purge it, and die after the first step, then after the second, and so on to the last one; how many steps there are."""
    for step in itertools.count(1):
        found = left_of(settings, left.name)
        if found is None:
            return step - 1
        kill(step)
        # What an earlier try has removed is removed again.
        with suppress(Killed):
            purge(spark, settings, replace(found, tables=left.tables))
    raise AssertionError


@pytest.mark.slow
def test_a_view_is_purged_though_each_step_is_killed_and_starts_as_new(spark, settings, stream, pair, removed, kill):
    gone, kept = pair
    left = left_of(settings, gone.name)
    assert [*left.tables] == [live_of(gone), gold_of(gone)]
    assert left.savepoints.keys() == {"before"}
    assert all([*left.tables.values(), left.machines, left.records, left.archived])
    assert left.checkpoints == {}, "the job has another view"
    assert left_of(settings, kept.name) is None, "its file is there"

    before = numbers(spark, settings, live_of(kept))
    assert purged_with_kills(spark, settings, left, kill) > 15

    assert traces.rows_of_view(settings, gone.name) == 0
    assert traces.rows_of_tables(settings, [gold_of(gone), live_of(gone)]) == 0
    assert archive.count(settings, [gold_of(gone)]) == 0
    assert archive.archived(settings, gold_of(gone)).seq == 0
    assert gold_of(gone) not in outcomes.latest(settings).positions
    assert gold_of(gone) not in marts.TABLE.newest(settings)["positions"]
    assert last(settings, gone) is None
    for name in (gold_of(gone), live_of(gone), late_of(gone), serving_of(gone)):
        assert not spark.catalog.tableExists(name), name
    assert spark.table(merged.FRESHNESS).where(f"view = '{gone.name}'").count() == 0
    assert numbers(spark, settings, live_of(kept)) == before

    again = replace(gone, process=numbered_by_ten)
    VIEWS[again.name] = again
    expected = {f"e{n}": 10 * (n + 1) for n in range(MINUTES)}
    roll_up(spark, settings, again, "run")
    assert numbers(spark, settings, gold_of(again)) == expected
    assert ledger.latest(settings, gold_of(again)).seq == 1
    assert run_live(settings, again)[again.name] == expected
    assert generations.get(settings, again.name).number == 1
    assert run_live(settings, kept)[kept.name] == before, "the job that it was in goes on"
    report = reconcile(spark, settings, again, "run")
    assert (report.verdict, report.unexplained) == (Verdict.EQUAL, 0)
    assert report.windows > 0, "they are compared from the first one on"
    with archive.archiving(spark, settings, "run") as take:
        assert take(gold_of(again)) == 1


def test_the_checkpoint_of_a_job_without_another_view_is_removed(spark, settings, stream, shop, view):
    shop.view("a", 0)
    shop.heartbeat(60)
    shop.flush()
    with connect(settings, "live") as session:
        query = service.start(session, settings, view)
        query.processAllAvailable()
        VIEWS.pop(view.name)
        left = left_of(settings, view.name)
        assert [str(job) for job in left.checkpoints] == [f"{view.name}/1"]
        with pytest.raises(LeaseHeld, match="is being written by"):
            purge(spark, settings, left)
        assert spark.table(live_of(view)).count(), "nothing was removed under its query"
        query.stop()
    purge(spark, settings, left)
    assert left_of(settings, view.name) is None
    assert lake.directories(lake.checkpoint(settings, view.name, 1)) == []
    VIEWS[view.name] = view


def test_what_a_replay_holds_is_not_removed(spark, settings, removed):
    intervals.claim(settings, "r-held", {gold_of(removed): intervals.ALWAYS})
    try:
        with pytest.raises(PurgeRefused, match="held by the replay r-held: promote or discard it"):
            purge(spark, settings, left_of(settings, removed.name))
        assert numbers(spark, settings, gold_of(removed))
    finally:
        intervals.release(settings, "r-held")


def test_a_stream_is_purged_its_topic_stays_and_it_is_read_again_from_the_first_record(
    spark, settings, stream, shop, monkeypatch, kill
):
    for n in range(3):
        shop.view(f"e{n}", n)
    shop.raw(b"no JSON", 5)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    tables = Tables.of(stream)
    with archive.archiving(spark, settings, "run") as take:
        take(tables.bronze)
    with monkeypatch.context() as patch:
        patch.delitem(CONTRACTS, stream.name)
        left = left_of(settings, stream.name)
        assert [*left.tables] == [tables.quarantine, tables.log, tables.bronze]
        assert (left.topic, left.archived) == (stream.topic, 1)
        assert purged_with_kills(spark, settings, left, kill) > 8
    assert sum(end - start for start, end in topic_offsets(settings, stream.topic).partitions.values()) == 4
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    assert ledger.latest(settings, tables.bronze).seq == 1
    assert (spark.table(tables.bronze).count(), spark.table(tables.log).count()) == (4, 3)
    with archive.archiving(spark, settings, "run") as take:
        assert take(tables.bronze) == 1


def test_every_table_of_the_control_database_is_purged_or_known_not_to_be(settings):
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        there = {name for (name,) in cursor.fetchall()}
    # The newest records have their own way, whoever holds an interval needs it, and Alembic has one row of its own. Read tables
    # are of aggregates, which are neither streams nor views, and schemas of topics, which stay. A test of the recovery of servers
    # makes the last one.
    others = {"ops_records", "interval_locks", "alembic_version", "read_entities", "read_positions"}
    others |= {"registered_schemas", "outlives", "erasures", "erased_offsets", "erased_versions", "subject_keys"}
    assert there - others == traces.OF_TABLES.keys() | traces.OF_VIEW.keys()
