"""Why a query does not start: another query runs on its checkpoint, or it cannot continue from its checkpoint."""

from dataclasses import replace

import pytest
from pyspark.sql import functions as F
from tests.integration.checkpoints.serving import run

from lockstep import service
from lockstep.catalog import connect
from lockstep.checkpoints import compatible, inspection, overview, resets
from lockstep.checkpoints.errors import ActionRefused, CheckpointIncompatible
from lockstep.definition.registry import VIEWS
from lockstep.errors import LeaseHeld
from lockstep.live import generations, lease


def test_a_second_query_on_a_checkpoint_is_refused_with_the_name_of_the_first(
    settings, view, minutes, counts, monkeypatch
):
    monkeypatch.setattr(lease, "WAIT_SECONDS", 1)
    minutes(range(2))
    with connect(settings, "live") as first_session, connect(settings, "live") as second_session:
        first = service.start(first_session, settings, view)
        try:
            first.processAllAvailable()
            with pytest.raises(
                LeaseHeld, match=rf"another query runs on its checkpoint.*lockstep:checkpoint:{view.name}:pid"
            ):
                service.start(second_session, settings, view)
            minutes(range(2, 4))
            first.processAllAvailable()
        finally:
            first.stop()
        monkeypatch.undo()
        second = service.start(second_session, settings, view)
        second.processAllAvailable()
        second.stop()
    assert counts() == [(f"10:0{minute}", 2) for minute in range(4)]


def test_the_position_and_the_state_of_a_query_can_be_looked_at(spark, settings, stream, view, shop, live):
    (before,) = overview.overview(settings, [view])
    assert (before.batch, before.behind, str(before)) == (
        None,
        0,
        f"{view.name}: generation 1, no batch yet, 0 offsets behind",
    )
    with pytest.raises(ActionRefused, match="no state yet"):
        inspection.state_stores(spark, settings, view)
    for n, page in enumerate(["/a", "/a", "/b"]):
        shop.view(f"e{n}", n, page=page)
    shop.flush()
    live()
    shop.view("not-read", 9)
    shop.flush()
    (after,) = overview.overview(settings, [view])
    assert (after.generation, after.behind) == (1, 1)
    assert sum(after.offsets[stream.topic].values()) == 3
    assert after.state_bytes > 0
    assert after.age.total_seconds() < 600

    rows = {store.name: store.rows for store in inspection.state_stores(spark, settings, view)}
    assert rows == {"stateStoreSave": 2, "dedupeWithinWatermark": 3}
    (state,) = inspection.read_state(spark, settings, view, 0, "/a", 10)
    assert (state["key"][f"_by_{view.name}"]["page"], state["value"]["count"]) == ("/a", 2)
    with pytest.raises(ActionRefused, match="no stateful operator 7"):
        inspection.read_state(spark, settings, view, 7, "", 10)


WINDOW = ("window_start", "window_end")


def by_user(view):
    """Count by page and user: another key of the state, and another column."""
    return replace(
        view,
        by={"page": "page", "user_id": "user_id"},
        columns={name: {**view.columns, "user_id": "STRING"}[name] for name in (*WINDOW, "page", "user_id", "views")},
        key=("window_start", "page", "user_id"),
    )


def with_size(view, kind, factor):
    """Say the number of views once more, in another type, with the same state."""

    def result(row):
        size = (row["views"] * factor).cast(kind)
        return F.array(F.struct(*(row[name].alias(name) for name in view.columns), size.alias("size")))

    return replace(view, columns={**view.columns, "size": kind}, result=result)


def test_an_incompatible_change_is_reported_before_a_deployment_and_refused_at_the_start(
    spark, settings, view, minutes, live, counts
):
    minutes(range(2))
    live()
    assert str(compatible.verdict(spark, settings, view)) == f"resumes     {view.name}: generation 1"
    assert compatible.verdict(spark, settings, replace(view, where="page <> '/robots.txt'")).differences == ()

    changed = by_user(view)
    verdict = compatible.verdict(spark, settings, changed)
    assert not verdict.resumes
    text = str(verdict)
    assert "the state of operator 0 (stateStoreSave) is" in text
    assert "Begin generation 2" in text
    with (
        connect(settings, "live") as own,
        pytest.raises(CheckpointIncompatible, match=r"not started\. Begin generation 2"),
    ):
        service.start(own, settings, changed)
    assert generations.current(settings, view.name) == 1
    live()
    assert counts() == [("10:00", 2), ("10:01", 2)], "the unchanged query continues"


@pytest.mark.slow
def test_a_view_with_a_new_column_goes_on_after_a_reset(spark, settings, view, minutes, batch, live, rows, monkeypatch):
    minutes(range(4))
    batch()
    live()
    changed = by_user(view)
    monkeypatch.setitem(VIEWS, view.name, changed)
    to = "2026-11-10T10:02:00Z"
    resets.reset(settings, resets.plan(spark, settings, changed, to), "a column", "tester")
    run(settings, changed)
    found = [(f"{r['window_start']:%H:%M}", r["views"], r["user_id"]) for r in rows(f"live.{view.name}")]
    assert sorted(found) == [("10:00", 2, None), ("10:01", 2, None), ("10:02", 2, "u1"), ("10:03", 2, "u1")]


def test_a_view_with_a_wider_type_goes_on_from_its_checkpoint_and_keeps_its_rows(
    spark, settings, view, minutes, rows, monkeypatch
):
    minutes(range(2))
    run(settings, with_size(view, "INT", 1))
    wide = with_size(view, "BIGINT", 2**40)
    monkeypatch.setitem(VIEWS, view.name, wide)
    assert compatible.verdict(spark, settings, wide).resumes
    minutes(range(2, 4))
    run(settings, wide)
    found = sorted((f"{r['window_start']:%H:%M}", r["size"]) for r in rows(f"live.{view.name}"))
    assert found == [("10:00", 2), ("10:01", 2), ("10:02", 2**41), ("10:03", 2**41)]
