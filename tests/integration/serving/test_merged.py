"""A merged view has each key of each window exactly once at every moment, and its final rows do not change."""

import threading
from collections import Counter
from typing import Any

from pyspark.errors import PySparkException

from lockstep import lake, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.serving import manifest
from lockstep.serving.merged import FRESHNESS, follow, freshness, publish, visible

Answer = dict[tuple[str, str], tuple[int, str, bool]]


def batch(spark, settings, stream, view):
    for work, what in ((ingest, stream), (refine, stream), (roll_up, view)):
        work(spark, settings, what, "run")


def answer(spark: Any, view: Any) -> list[Any]:
    return spark.table(f"serving.{view.name}").collect()


def by_key(rows: list[Any]) -> Answer:
    return {(f"{r['window_start']:%H:%M}", r["page"]): (r["views"], r["_layer"], r["_final"]) for r in rows}


class Reader(threading.Thread):
    """Reads the merged view again and again, in a session of its own."""

    def __init__(self, settings: Any, view: Any) -> None:
        super().__init__()
        self.settings, self.view = settings, view
        self.answers: list[list[Any]] = []
        self.errors: list[PySparkException] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        with connect(self.settings, "reader") as spark:
            while not self.stopping.wait(0.2):
                try:
                    self.answers.append(answer(spark, self.view))
                # Any error that a reader gets fails the test.
                except PySparkException as error:
                    self.errors.append(error)


def test_each_key_of_each_window_appears_once_and_final_rows_do_not_change(spark, settings, stream, view, shop):
    for n, second in enumerate([15, 45, 70, 110, 140]):
        shop.view(f"e{n}", second)
    shop.heartbeat(130)
    shop.flush()
    batch(spark, settings, stream, view)
    publish(spark, settings, [view])
    first = by_key(answer(spark, view))
    assert first == {("10:00", "/"): (2, "batch", True), ("10:01", "/"): (2, "batch", True)}, (
        "a window is closed when the log has passed 10:02:07"
    )
    reader = Reader(settings, view)
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        publish(spark, settings, [view])
        reader.start()
        for n, second in enumerate([150, 185, 190, 250]):
            shop.view(f"f{n}", second, page="/late-morning")
        shop.heartbeat(310)
        shop.flush()
        running.processAllAvailable()
        ahead = by_key(answer(spark, view))
        assert ahead.items() >= first.items()
        assert ahead["10:03", "/late-morning"] == (2, "live", False), "readers see live's row before batch has it"
        batch(spark, settings, stream, view)
        between = by_key(answer(spark, view))
        publish(spark, settings, [view])
        running.stop()
    reader.stopping.set()
    reader.join()
    last = by_key(answer(spark, view))
    assert {key: row[0] for key, row in between.items()} == {key: row[0] for key, row in last.items()}
    assert {row[1:] for row in last.values()} == {("batch", True)}
    assert len(last) == 6
    assert reader.errors == []
    assert len(reader.answers) > 3
    for rows in reader.answers:
        assert max(Counter((r["window_start"], r["page"]) for r in rows).values()) == 1
        finals = {key: row[0] for key, row in by_key(rows).items() if row[2]}
        assert finals.items() <= {key: row[0] for key, row in last.items()}.items()


def test_a_merged_view_shows_how_fresh_it_is(spark, settings, stream, view, shop):
    shop.view("e1", 15)
    shop.heartbeat(130)
    shop.flush()
    batch(spark, settings, stream, view)
    publish(spark, settings, [view])
    fresh = freshness(settings, view, visible(settings))
    assert f"{fresh.final_until:%H:%M:%S}" == "10:02:03"
    assert fresh.live_at is None
    (row,) = spark.table(FRESHNESS).where(f"view = '{view.name}'").collect()
    assert f"{row['final_until']:%H:%M:%S}" == "10:02:03"
    (merged,) = answer(spark, view)
    assert merged["_as_of"] == row["batch_at"] == fresh.batch_at.replace(tzinfo=None)


def test_readers_are_held_at_the_version_that_the_manifest_or_a_failed_gate_names(spark, settings, stream, view, shop):
    shop.view("e1", 15)
    shop.heartbeat(130)
    shop.flush()
    batch(spark, settings, stream, view)
    version = next(lake.commits(settings, f"gold.{view.name}")).version
    manifest.hold(spark, settings, f"test-{view.name}", {f"gold.{view.name}": version})
    publish(spark, settings, [view])
    spark.sql(f"UPDATE gold.{view.name} SET views = 9")
    assert by_key(answer(spark, view)) == {("10:00", "/"): (1, "batch", True)}
    manifest.publish(spark, settings, f"test-{view.name}", {f"gold.{view.name}": version + 1})
    follow(spark, settings, [f"gold.{view.name}"])
    assert by_key(answer(spark, view)) == {("10:00", "/"): (9, "batch", True)}
