"""Replays of silver, by time, offsets and versions: bronze is read again, by the code of now; gold follows."""

import pytest
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.ingest import ledger
from lockstep.refine import parse
from lockstep.replay import run
from lockstep.replay.digest import digest
from lockstep.replay.request import Refused

LAYERS = ["silver", "gold"]


def play(shop, batch):
    """Three runs, with a duplicate across two of them, a late row and poison."""
    for n in range(6):
        shop.view(f"e{n}", 20 * n, user_id=f"u{n}")
    shop.raw(b"{broken", 30)
    shop.flush()
    batch()
    shop.view("e1", 20, arrives_after=60, user_id="u1")
    shop.view("late", 5, arrives_after=90)
    shop.view("odd", 130, page="/odd")
    shop.flush()
    batch()
    shop.view("last", 3600)
    shop.heartbeat(7200)
    shop.flush()
    batch()


def state(spark, stream, view):
    tables = (f"silver.{stream.name}", f"quarantine.{stream.name}", f"gold.{view.name}")
    return {table: digest(spark.table(table).drop("_run_id")) for table in tables}


def test_the_same_code_gives_the_same_rows_and_sums_whatever_way_the_interval_is_given(
    spark, settings, stream, view, shop, batch, asked, redone
):
    play(shop, batch)
    before, sums = state(spark, stream, view), ledger.latest(settings, f"silver.{stream.name}").totals
    ways = ({}, {"versions": f"silver.{stream.name}@2..2"}, {"offsets": {"0": [0, 1]}})
    for way in ways[: 2 if _size(settings, stream, 0) == 0 else 3]:
        replay = redone(asked(layers=LAYERS, **way))
        found = replay.stages["compared"]["tables"][f"silver.{stream.name}"]
        assert found["windows"] == found["equal"] > 0
        assert state(spark, stream, view) == before
    assert ledger.latest(settings, f"silver.{stream.name}").totals == sums
    assert ledger.latest(settings, f"gold.{view.name}").totals == {"counted": 8, "ignored": 1, "side": 0}
    assert batch() is None, "there is nothing new for the next run"


def _size(settings, stream, partition):
    entry = ledger.latest(settings, f"bronze.{stream.name}")
    return next(r.end for r in entry.ranges if r.partition == partition)


def test_a_stricter_contract_moves_rows_to_quarantine_and_undo_takes_them_back(
    spark, settings, stream, view, shop, batch, asked, redone, rows, monkeypatch
):
    play(shop, batch)
    before, sums = state(spark, stream, view), ledger.latest(settings, f"gold.{view.name}").totals
    reason = parse._reason
    odd = F.when(F.col("page") == "/odd", "odd page")
    monkeypatch.setattr(parse, "_reason", lambda contract: F.coalesce(reason(contract), odd))
    replay = redone(asked(layers=LAYERS, minutes=(2, 3)))
    assert {r["_reason"] for r in rows(f"quarantine.{stream.name}")} == {"malformed", "odd page"}
    assert {r["page"] for r in rows(f"gold.{view.name}")} == {"/"}
    silver, gold = (ledger.latest(settings, t) for t in (f"silver.{stream.name}", f"gold.{view.name}"))
    assert silver.totals["silver"] == gold.totals["counted"] + gold.totals["ignored"]
    assert sum(silver.totals.values()) == ledger.latest(settings, f"bronze.{stream.name}").totals["rows"]
    run.undo(spark, settings, replay.id, "run", "tester")
    assert state(spark, stream, view) == before
    assert ledger.latest(settings, f"gold.{view.name}").totals == sums


def test_offsets_and_versions_that_the_ledger_does_not_have_are_refused(
    spark, settings, stream, shop, batch, asked, redone
):
    play(shop, batch)
    for wrong in (
        {"offsets": {"0": [0, 999]}},
        {"offsets": {"9": [0, 1]}},
        {"versions": f"bronze.{stream.name}@1..99"},
    ):
        with pytest.raises(Refused, match=r"out of range|no version"):
            redone(asked(layers=LAYERS, **wrong))
    assert not [t for t in lake.tables(settings) if t.startswith("shadow.") and stream.name in t]
