"""A reader that names its write gets an answer that has it, or is told how far the answer is."""

import pytest
from typer.testing import CliRunner

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.cli import main
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.serving.merged import publish
from lockstep.serving.read_your_writes import NotReadYet, wait


def written(shop, event_id, second):
    """The offsets that follow a write."""
    shop.view(event_id, second)
    shop.flush()
    partition, offset = shop.acknowledged[-1]
    return {shop.contract.name: {partition: offset + 1}}


def test_the_answer_has_the_write_once_live_has_read_it(spark, settings, stream, view, shop):
    mine = written(shop, "e1", 5)
    with pytest.raises(NotReadYet, match=rf"has not read the write after 0 s: {stream.name}-. is read up to 0 of 1"):
        wait(settings, view, mine, 0)
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        wait(settings, view, mine, 120)
        publish(spark, settings, [view])
        assert [row["views"] for row in spark.table(f"serving.{view.name}").collect()] == [1]
        wait(settings, view, written(shop, "e2", 6), 120)
        assert [row["views"] for row in spark.table(f"serving.{view.name}").collect()] == [2], "at once"
        running.stop()


def test_without_a_live_table_it_is_batch_that_must_have_read_it(spark, settings, stream, view, shop, monkeypatch):
    mine = written(shop, "e1", 5)
    for work, what in ((ingest, stream), (refine, stream), (roll_up, view)):
        work(spark, settings, what, "run")
    wait(settings, view, mine, 0)
    later = written(shop, "e2", 6)
    with pytest.raises(NotReadYet):
        wait(settings, view, later, 0)
    monkeypatch.setattr("lockstep.settings.load", lambda: settings)
    asked = CliRunner().invoke(main.app, ["wait", view.name, "--timeout", "0"])
    assert isinstance(asked.exception, NotReadYet), "all that the topic has now"
