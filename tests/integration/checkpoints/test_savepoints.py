"""A savepoint brings back the query as it was, and what has arrived since is counted once."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep import lake, service
from lockstep.catalog import connect
from lockstep.checkpoints import forks
from lockstep.checkpoints.errors import ActionRefused, CheckpointBroken
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.definition.registry import VIEWS
from lockstep.live import generations

SIX = [(f"10:0{minute}", 2) for minute in range(6)]


def save(spark, settings, view, name):
    return take_savepoint(spark, settings, generations.get(settings, view.name), name, "tester")


def test_a_savepoint_brings_back_state_and_table_and_later_events_are_counted_once(
    spark, settings, view, shop, minutes, live, counts
):
    minutes(range(2))
    shop.view("half", 125)
    shop.flush()
    live()
    saved = save(spark, settings, view, "two-and-a-half")
    assert saved.batch >= 0
    with pytest.raises(ActionRefused, match="already"):
        save(spark, settings, view, "two-and-a-half")
    shop.view("other-half", 150)
    shop.flush()
    minutes(range(3, 6))
    live()
    assert counts() == SIX
    spark.sql(f"UPDATE live.{view.name} SET views = views + 7, page = 'wrong'")

    assert forks.restore(settings, view, "two-and-a-half", "a wrong deployment", "tester").generation == 2
    live()
    assert counts() == SIX, "the half window continues from its state"

    changed = replace(view, name=f"{view.name}_beside")
    VIEWS[changed.name] = changed
    try:
        forked = forks.fork(spark, settings, view, changed, "to compare", "tester")
        assert forked.generation == 2
        assert "generation 2" in str(forked)
        shop.view("later", 400)
        shop.flush()
        with connect(settings, "live") as own:
            running = service.start(own, settings, changed)
            running.processAllAvailable()
            running.stop()
        written = [c.rows for c in lake.commits(settings, f"live.{changed.name}") if c.record.get("writer") == "live"]
        assert written == [1], "it starts where the original query was"
        beside = {(f"{r['window_start']:%H:%M}", r["views"]) for r in spark.table(f"live.{changed.name}").collect()}
        assert beside == {*SIX, ("10:06", 1)}
        assert counts() == SIX
    finally:
        del VIEWS[changed.name]


def test_a_savepoint_that_has_changed_is_not_restored(spark, settings, view, minutes, live):
    minutes(range(1))
    live()
    save(spark, settings, view, "fresh")
    with pytest.raises(ActionRefused, match="it has: fresh"):
        forks.restore(settings, view, "other", "a test", "tester")
    file = next(Path(settings.lake, "_savepoints", view.name, "fresh", "checkpoint", "state").rglob("1.changelog"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointBroken, match=r"1\.changelog"):
        forks.restore(settings, view, "fresh", "a test", "tester")
    assert generations.current(settings, view.name) == 1
