"""What a query meets before it starts: another one on its checkpoint, or a checkpoint that it cannot follow any more."""

from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from lockstep import service
from lockstep.catalog import connect
from lockstep.checkpoints import compatible, inspection, overview
from lockstep.checkpoints.errors import CheckpointIncompatible, Refused
from lockstep.errors import LeaseHeld
from lockstep.live import generations, lease


def test_a_second_query_on_a_checkpoint_is_not_let_in_and_is_told_who_runs(
    settings, view, minutes, counts, monkeypatch
):
    monkeypatch.setattr(lease, "WAIT_SECONDS", 1)
    minutes(range(2))
    with connect(settings, "live") as one, connect(settings, "live") as other:
        first = service.start(one, settings, view)
        try:
            first.processAllAvailable()
            with pytest.raises(
                LeaseHeld, match=rf"another query runs on its checkpoint.*lockstep:checkpoint:{view.name}:pid"
            ):
                service.start(other, settings, view)
            minutes(range(2, 4))
            first.processAllAvailable()
        finally:
            first.stop()
        monkeypatch.undo()
        second = service.start(other, settings, view)
        second.processAllAvailable()
        second.stop()
    assert counts() == [(f"10:0{minute}", 2) for minute in range(4)]


def test_a_query_tells_where_it_is_and_what_it_holds(spark, settings, stream, view, shop, live):
    (before,) = overview.overview(settings, [view])
    assert (before.batch, before.behind, str(before)) == (
        None,
        0,
        f"{view.name}: generation 1, no batch yet, 0 offsets behind",
    )
    with pytest.raises(Refused, match="no state yet"):
        inspection.stores(spark, settings, view)
    for n, page in enumerate(["/a", "/a", "/b"]):
        shop.view(f"e{n}", n, page=page)
    shop.flush()
    live()
    shop.view("not-read", 9)
    shop.flush()
    (now,) = overview.overview(settings, [view])
    assert (now.generation, now.behind) == (1, 1)
    assert sum(now.offsets[stream.topic].values()) == 3
    assert now.state_bytes > 0
    assert now.age.total_seconds() < 600

    held = {store.name: store.rows for store in inspection.stores(spark, settings, view)}
    assert held == {"stateStoreSave": 2, "dedupeWithinWatermark": 3}
    (found,) = inspection.look(spark, settings, view, 0, "/a", 10)
    assert (found["key"]["page"], found["value"]["count"]) == ("/a", 2)
    with pytest.raises(Refused, match="no stateful operator 7"):
        inspection.look(spark, settings, view, 7, "", 10)


def by_user(page_views):
    """Counted by page and user: another key of the state, and another column."""
    rows = page_views.groupBy(F.window("event_time", "1 minute"), "page", "user_id").agg(F.count("*").alias("views"))
    return rows.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "page", "views", "user_id"
    )


def without_robots(page_views):
    """The same state, other rows."""
    rows = page_views.where("page <> '/robots.txt'").groupBy(F.window("event_time", "1 minute"), "page")
    counted = rows.agg(F.count("*").alias("views"))
    return counted.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "page", "views"
    )


def test_a_change_that_the_checkpoint_cannot_follow_is_said_before_and_refused_at_the_start(
    spark, settings, view, minutes, live, counts
):
    minutes(range(2))
    live()
    assert str(compatible.verdict(spark, settings, view)) == f"resumes     {view.name}: generation 1"
    assert compatible.verdict(spark, settings, replace(view, transform=without_robots)).differences == ()

    changed = replace(
        view, transform=by_user, columns={**view.columns, "user_id": "STRING"}, key=("window_start", "page", "user_id")
    )
    said = str(compatible.verdict(spark, settings, changed))
    assert "user_id string" in said, "the sink"
    assert "the state of operator 0 (stateStoreSave) is" in said
    assert "Begin generation 2" in said
    with (
        connect(settings, "live") as own,
        pytest.raises(CheckpointIncompatible, match=r"not started\. Begin generation 2"),
    ):
        service.start(own, settings, changed)
    assert generations.current(settings, view.name) == 1
    live()
    assert counts() == [("10:00", 2), ("10:01", 2)], "the query as it was goes on"
