"""Both layers give the same rows from one definition, and every closed window is compared."""

from dataclasses import replace
from datetime import timedelta
from operator import itemgetter
from pathlib import Path

from pyspark.sql import functions as F
from tests.support.checkpoints import write_batch
from tests.support.shop import START

from lockstep import lake, service
from lockstep.batch.rollup import is_current, rebuild, roll_up
from lockstep.catalog import connect
from lockstep.definition.tables import Tables
from lockstep.definition.windowing import transform
from lockstep.definition.windows import counts_of, ranking
from lockstep.ingest.bronze import ingest
from lockstep.ingest.offsets import topic_offsets
from lockstep.reconcile import attribute, run
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from lockstep.session import to_dataframe


def pretend_live_is_at_the_end(settings, stream, view):
    """Write a checkpoint of the live query that ends where the topic ends, with all of its event time passed."""
    ends = {str(p): end for p, (_, end) in topic_offsets(settings, stream.topic).partitions.items()}
    watermark = int((START + timedelta(days=1)).timestamp() * 1000)
    write_batch(Path(lake.checkpoint(settings, view.name, 1)), 0, {stream.topic: ends}, watermark)


def live_is_as_gold(spark, settings, stream, view):
    """Live has gold's rows, and has read all of the topic."""
    spark.sql(
        f"CREATE TABLE live.{view.name} USING delta LOCATION '{lake.path(settings, f'live.{view.name}')}' "
        f"AS SELECT *, current_timestamp() AS _updated_at FROM gold.{view.name}"
    )
    pretend_live_is_at_the_end(settings, stream, view)


def batch(spark, settings, stream, view):
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    return roll_up(spark, settings, view, "run")


def counts(rows):
    return sorted((f"{r['window_start']:%H:%M}", r["page"], r["views"]) for r in rows)


def play(shop):
    """The worked example tumbling_60s, with duplicates, a late row and poison around it."""
    for n, second in enumerate([15, 45, 70, 110, 140]):
        shop.view(f"e{n}", second)
    shop.view("e1", 45, arrives_after=3)
    shop.view("too-late", 50, arrives_after=6)
    shop.view("just-in-time", 50, arrives_after=5)
    shop.raw(b"{broken", 130)
    shop.heartbeat(300)
    shop.flush()


ANSWER = [("10:00", "/", 3), ("10:01", "/", 2), ("10:02", "/", 1)]


def test_both_layers_give_the_worked_answer_and_reconciliation_finds_them_equal(
    spark, settings, stream, view, shop, rows
):
    play(shop)
    entry = batch(spark, settings, stream, view)
    assert entry.counts == {"counted": 6, "ignored": 1, "side_output": 0}
    assert counts(rows(f"gold.{view.name}")) == ANSWER
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        dropped = [op.numRowsDroppedByWatermark for op in running.lastProgress.stateOperators]
        running.stop()
    assert counts(rows(f"live.{view.name}")) == ANSWER
    assert dropped == [0, 0], "Spark's watermark must never decide what is late"
    report = reconcile(spark, settings, view, "run")
    assert (report.verdict, report.windows) == ("equal", 3)
    assert verdict(spark, settings, view) == ("equal", 0)


def test_few_rows_that_are_equal_are_compared_without_spark_and_many_by_it_with_the_same_result(
    spark, settings, stream, view, shop, rows, monkeypatch
):
    play(shop)
    batch(spark, settings, stream, view)
    live_is_as_gold(spark, settings, stream, view)
    with monkeypatch.context() as without_spark:
        without_spark.setattr(run, "by_window", None)
        assert reconcile(spark, settings, view, "few").windows == 3
    with monkeypatch.context() as with_spark:
        with_spark.setattr(lake, "is_small", lambda _: False)
        assert reconcile(spark, settings, view, "many", again_since=START).windows == 3
    few, many = (recorded(rows, view, run_id) for run_id in ("few", "many"))
    assert few == many
    assert len(few) == 3


def test_of_few_rows_spark_gets_those_that_differ_and_judges_them_as_among_many(
    spark, settings, stream, view, shop, rows, monkeypatch
):
    play(shop)
    batch(spark, settings, stream, view)
    live_is_as_gold(spark, settings, stream, view)
    spark.sql(f"DELETE FROM gold.{view.name} WHERE window_start = timestamp '2026-11-10 10:01:00'")
    given = []
    with monkeypatch.context() as watched:
        watched.setattr(run, "to_dataframe", lambda spark, few: given.append(few.num_rows) or to_dataframe(spark, few))
        assert reconcile(spark, settings, view, "few", again_since=START).unexplained == 1
    assert given == [1, 0]
    with monkeypatch.context() as with_spark:
        with_spark.setattr(lake, "is_small", lambda _: False)
        assert reconcile(spark, settings, view, "many", again_since=START).unexplained == 1
    few, many = (recorded(rows, view, run_id) for run_id in ("few", "many"))
    assert few == many
    assert [row["verdict"] for row in few] == ["equal", "unexplained", "equal"]


def recorded(rows, view, run_id):
    """What a run has recorded of each window, but when."""
    of_run = (row for row in rows("ops.reconciliation") if (row["view"], row["run_id"]) == (view.name, run_id))
    without_run = (row.asDict() | {"run_id": None, "reconciled_at": None} for row in of_run)
    return sorted(without_run, key=itemgetter("window_start"))


def test_a_difference_is_not_forgotten_until_it_is_repaired(spark, settings, stream, view, shop, rows):
    play(shop)
    batch(spark, settings, stream, view)
    live_is_as_gold(spark, settings, stream, view)
    assert verdict(spark, settings, view) == ("equal", 0)
    spark.sql(f"DELETE FROM gold.{view.name} WHERE window_start = timestamp '2026-11-10 10:01:00'")
    assert verdict(spark, settings, view, again_since=START) == ("unexplained", 1)
    assert verdict(spark, settings, view) == ("unexplained", 1), "it must stay until it is repaired"
    rebuild(spark, settings, view, START, START.replace(hour=11), "repair")
    assert verdict(spark, settings, view) == ("equal", 0)
    assert counts(rows(f"gold.{view.name}")) == ANSWER


def test_all_differences_are_judged_however_few_are_looked_at_at_a_time(
    spark, settings, stream, view, shop, rows, monkeypatch
):
    for n in range(7):
        shop.view(f"e{n}", 60 * (n // 3) + n, page=f"/{n}")
    shop.heartbeat(600)
    shop.flush()
    batch(spark, settings, stream, view)
    live_is_as_gold(spark, settings, stream, view)
    spark.sql(f"UPDATE live.{view.name} SET views = 9")
    monkeypatch.setattr(attribute, "PAGE_KEYS", 2)
    assert verdict(spark, settings, view) == ("unexplained", 3)
    corrected = [row for row in rows("ops.corrections") if row["view"] == view.name]
    assert len({row["key"] for row in corrected}) == len(corrected) == 7


MINUTE = timedelta(minutes=1)
SKETCH = {
    "by": {},
    "measures": {"all": "count(*)", "counts": counts_of("page", 64)},
    "result": ranking("page", highest=3, distinct=64),
    "columns": {
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "rank": "INT",
        "page": "STRING",
        "views": "BIGINT",
        "exact": "BOOLEAN",
        "views_error": "BIGINT",
        "rank_error": "INT",
    },
    "key": ("window_start", "rank"),
}


def test_a_sketch_is_compared_within_the_error_that_it_states(spark, settings, stream, view, shop, rows):
    sketch = replace(view, **SKETCH, approximate={"views": "views_error", "page": "rank_error"})
    pages = ["/a"] * 120 + ["/b"] * 60 + ["/c"] * 55 + [f"/rare/{n}" for n in range(150)]
    for n, page in enumerate(pages):
        shop.view(f"e{n}", n / 10, page=page)
    shop.heartbeat(600)
    shop.flush()
    batch(spark, settings, stream, sketch)
    # The live layer sees the same rows in another order, the rare pages first.
    silver = spark.table(Tables.of(stream).log).repartition(1).sortWithinPartitions(F.desc("event_time"))
    live = transform(sketch, silver).withColumn("_updated_at", F.current_timestamp())
    live.write.format("delta").save(lake.path(settings, f"live.{view.name}"))
    spark.sql(f"CREATE TABLE live.{view.name} USING delta LOCATION '{lake.path(settings, f'live.{view.name}')}'")
    pretend_live_is_at_the_end(settings, stream, view)
    assert verdict(spark, settings, sketch) == ("within its stated error", 0)
    assert [row for row in rows("ops.corrections") if row["view"] == view.name] == []
    exact = replace(sketch, approximate={})
    assert verdict(spark, settings, exact, again_since=START) == ("unexplained", 1), "they do differ"
    spark.sql(f"UPDATE live.{view.name} SET page = '/x' WHERE rank = 1")
    assert verdict(spark, settings, sketch, again_since=START) == ("unexplained", 1)
    spark.sql(f"UPDATE live.{view.name} SET page = '/a', views = views + 40 WHERE rank = 1")
    assert verdict(spark, settings, sketch, again_since=START) == ("unexplained", 1)


def verdict(spark, settings, view, **options):
    report = reconcile(spark, settings, view, "run", **options)
    return report.verdict, report.unexplained


def test_a_rebuild_repairs_rows_that_others_changed_and_counts_nothing_twice(spark, settings, stream, view, shop, rows):
    play(shop)
    batch(spark, settings, stream, view)
    rebuild(spark, settings, view, START, START.replace(hour=12), "again")
    assert is_current(settings, view)
    spark.sql(f"UPDATE gold.{view.name} SET views = 9")
    assert not is_current(settings, view)
    entry = rebuild(spark, settings, view, START, START.replace(hour=12), "repair")
    assert counts(rows(f"gold.{view.name}")) == ANSWER
    assert entry.totals["counted"] == 6
    assert roll_up(spark, settings, view, "run") is None
