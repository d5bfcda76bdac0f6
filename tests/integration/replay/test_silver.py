"""Replays of silver, by time, offsets and versions: bronze is read again, by the code of now; gold follows."""

from dataclasses import replace
from importlib import import_module

import pytest
from tests.support.digest import digest

from lockstep import ledger
from lockstep.contracts import CONTRACTS
from lockstep.refine import silver
from lockstep.replay import promote as promotion
from lockstep.replay import run
from lockstep.serving import manifest

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
    shop.view("odd", 130, page="/odd", session_id=None)
    shop.flush()
    batch()
    shop.view("last", 3600)
    shop.heartbeat(7200)
    shop.flush()
    batch()


def state(settings, stream, view):
    tables = (f"silver.{stream.name}", f"quarantine.{stream.name}", f"gold.{view.name}")
    return {table: digest(settings, table, without=["_run_id"]) for table in tables}


def test_the_same_code_gives_the_same_rows_and_sums(spark, settings, stream, view, shop, batch, asked, redone):
    play(shop, batch)
    before, sums = state(settings, stream, view), ledger.latest(settings, f"silver.{stream.name}").totals
    replay = redone(asked(layers=LAYERS, versions=f"silver.{stream.name}@2..2"))
    diff = replay.compared.tables[f"silver.{stream.name}"]
    assert diff.windows == diff.equal > 0
    assert state(settings, stream, view) == before
    assert ledger.latest(settings, f"silver.{stream.name}").totals == sums
    assert ledger.latest(settings, f"gold.{view.name}").totals == {"counted": 8, "ignored": 1, "side_output": 0}
    assert batch() is None, "there is nothing new for the next run"


@pytest.mark.slow
def test_a_field_that_the_contract_names_later_is_in_old_rows_after_a_replay(
    spark, settings, stream, view, shop, batch, asked, redone, rows, monkeypatch
):
    """Also an older replay can still be undone: what it puts back gets the columns and types that the table has now."""

    def declare(**columns):
        CONTRACTS[stream.name] = replace(stream, columns={**columns, **stream.columns})
        for module in (import_module("lockstep.ledger.entries"), silver):
            monkeypatch.setattr(module, "code_version", lambda: str(columns))

    def read():
        return [(row["campaign"], row["position"], row["_unknown"]) for row in rows(table)]

    table = f"silver.{stream.name}"
    declare(position="INT")
    shop.view("old", 0, campaign="spring", position=1)
    shop.heartbeat(7200)
    shop.flush()
    batch()
    assert ledger.latest(settings, table).unknown == {"campaign": 1}
    first = redone(asked(layers=LAYERS))
    declare(position="BIGINT", campaign="STRING")
    batch()
    assert read() == [(None, 1, '["campaign"]')]
    run.undo(spark, settings, first.id, "run", "tester")
    assert read() == [(None, 1, '["campaign"]')]
    redone(asked(layers=LAYERS))
    assert read() == [("spring", 1, None)]


def test_a_stricter_contract_moves_rows_to_quarantine_and_undo_takes_them_back(
    spark, settings, stream, view, shop, batch, asked, redone, rows, monkeypatch
):
    play(shop, batch)
    before, sums = state(settings, stream, view), ledger.latest(settings, f"gold.{view.name}").totals
    CONTRACTS[stream.name] = replace(stream, required=(*stream.required, "session_id"))
    replay = redone(asked(layers=LAYERS, minutes=(2, 3)), until="approved")
    published = {}

    def look(_):
        published.update(manifest.published(settings))

    monkeypatch.setattr(promotion, "failpoint", look)
    run.promote(spark, settings, replay.id, "run")
    both = {f"silver.{stream.name}", f"gold.{view.name}"}
    assert both <= published.keys(), "readers are held until all is done"
    assert not both & manifest.published(settings).keys()
    published_rows = manifest.read(spark, settings, f"gold.{view.name}").collect()
    assert sorted(published_rows) == sorted(rows(f"gold.{view.name}"))
    assert {r["_reason"] for r in rows(f"quarantine.{stream.name}")} == {"malformed", "missing session_id"}
    assert {r["page"] for r in rows(f"gold.{view.name}")} == {"/"}
    silver, gold = (ledger.latest(settings, t) for t in (f"silver.{stream.name}", f"gold.{view.name}"))
    assert silver.totals["silver"] == gold.totals["counted"] + gold.totals["ignored"]
    assert sum(silver.totals.values()) == ledger.latest(settings, f"bronze.{stream.name}").totals["rows"]
    run.undo(spark, settings, replay.id, "run", "tester")
    assert state(settings, stream, view) == before
    assert ledger.latest(settings, f"gold.{view.name}").totals == sums
