"""Rows that bronze has lost are read from Kafka again; rows that it has, and what was erased in them, stay as they are."""

import json

import pytest
from tests.support.digest import digest

from lockstep import ledger
from lockstep.cli import ledger as commands
from lockstep.control.database import control
from lockstep.ledger.heads import head
from lockstep.quality import suites
from lockstep.replay import run

LAYERS = ["bronze", "silver", "gold"]


def test_lost_rows_come_back_from_kafka_and_an_erased_subject_does_not(
    spark, settings, stream, view, shop, batch, asked, redone, rows
):
    for n in range(8):
        shop.view(f"e{n}", 20 * n, user_id="erased" if n == 5 else "u1")
    shop.flush()
    batch()
    shop.view("not taken yet", 130)
    shop.flush()
    bronze = f"bronze.{stream.name}"
    before = digest(settings, bronze, where=lambda row: b"erased" not in row["value"])
    spark.sql(f"UPDATE {bronze} SET value = NULL, key = NULL WHERE contains(cast(value AS STRING), 'erased')")
    spark.sql(f"DELETE FROM {bronze} WHERE cast(value AS STRING) RLIKE '\"e[12]\"'")

    replay = redone(asked(layers=LAYERS, minutes=(0, 10)))
    assert [r.size for r in replay.plan.parts[0].missing] == [], "what Kafka alone had was ingested first"
    assert digest(settings, bronze, where=_is_old_and_not_erased) == before
    offsets = [(r["partition"], r["offset"]) for r in rows(bronze)]
    assert sorted(offsets) == sorted(shop.acknowledged)
    assert sorted(r["event_id"] for r in rows(f"silver.{stream.name}")) == sorted(
        ["not taken yet", *(f"e{n}" for n in range(8) if n != 5)]
    )
    assert sum(r["views"] for r in rows(f"gold.{view.name}")) == 8
    assert commands.problems(settings, stream)[1] == []
    entry = ledger.latest(settings, bronze)
    assert entry.totals == {"rows": 9}
    with control(settings) as connection:
        assert head(connection, bronze).seq == entry.seq
    assert batch() is None


@pytest.mark.parametrize("what", ["a view that is not chosen", "rows that fail their gate"])
def test_rows_that_a_replay_ingests_are_rolled_up_as_the_dags_would(
    what, spark, settings, stream, view, shop, batch, asked, tmp_path
):
    shop.view("e1", 1)
    shop.flush()
    batch()
    shop.view("e2", 2, page="/unknown")
    shop.flush()
    if what == "a view that is not chosen":
        own = settings.model_copy(update={"views": "page_views_per_minute"})
    else:
        own = settings.model_copy(update={"project": tmp_path})
        suite = suites.suite_file(own, f"silver.{stream.name}")
        suite.parent.mkdir(parents=True)
        pages = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "page", "value_set": ["/"]}}
        suite.write_text(json.dumps({"name": f"silver.{stream.name}", "expectations": [pages]}))
    replay = run.open_replay(spark, own, asked(layers=LAYERS), "tester", "run", f"missing-{stream.name[-8:]}")
    run.discard(spark, own, replay.id, "run", "tester")
    assert ledger.latest(settings, f"silver.{stream.name}").totals["silver"] == 2
    assert ledger.latest(settings, f"gold.{view.name}").totals["counted"] == 1


def _is_old_and_not_erased(row):
    return row["value"] is not None and b"not taken yet" not in row["value"]
