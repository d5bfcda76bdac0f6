"""A changed definition, replayed over an interval: planned, computed in a shadow, compared, promoted, undone."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.support.digest import digest
from tests.support.shop import START

from lockstep import lake, ledger
from lockstep.batch import rollup
from lockstep.batch.rollup import rebuild, roll_up
from lockstep.control import intervals
from lockstep.definition.registry import VIEWS
from lockstep.errors import Overtaken
from lockstep.replay import promote, run
from lockstep.replay.request import ReplayRefused
from lockstep.replay.stages import KeyCounts

WITHOUT_FRONT_PAGE = "page <> '/'"


def play(shop):
    for n in range(12):
        shop.view(f"e{n}", 20 * n, page="/" if n % 3 else "/cart")
    shop.view("later", 3600 + 30, page="/")
    shop.heartbeat(7200)
    shop.flush()


def test_a_changed_definition_is_promoted_for_its_interval_alone_and_undone(
    spark, settings, stream, view, shop, rows, redone, batch, asked
):
    play(shop)
    batch()
    gold = f"gold.{view.name}"
    before = digest(settings, gold)
    VIEWS[view.name] = replace(view, where=WITHOUT_FRONT_PAGE)

    replay = redone(asked(), until="compared")
    assert digest(settings, gold) == before, "until it is promoted, nothing has changed"
    diff = replay.compared.tables[gold]
    assert (diff.windows, diff.equal, diff.changed, diff.removed) == (4, 0, 4, 0)
    assert diff.keys == KeyCounts(equal=4, changed=0, added=0, removed=4)

    run.approve(spark, settings, replay.id, "run", "tester")
    run.promote(spark, settings, replay.id, "run")
    assert sorted((f"{r['window_start']:%H:%M}", r["page"]) for r in rows(gold)) == [
        *((f"10:0{m}", "/cart") for m in range(4)),
        ("11:00", "/"),
    ], "the window outside of the interval is as it was"
    assert [t for t in lake.tables(settings) if replay.id in t] == [], "shadows do not stay"
    version = _version(settings, gold)
    assert run.promote(spark, settings, replay.id, "again").versions == {gold: version}

    undone = run.undo(spark, settings, replay.id, "run", "tester")
    assert undone.kept == {view.name: 0}
    assert run.undo(spark, settings, replay.id, "again", "tester") == undone
    assert _version(settings, gold) == version + 1, "each is one commit, however often it is run"
    assert digest(settings, gold) == before
    assert ledger.latest(settings, gold).totals["counted"] == 13
    assert roll_up(spark, settings, view, "run") is None


def _version(settings, table):
    return next(lake.commits(settings, table)).version


def test_what_arrives_meanwhile_is_caught_up_and_survives_the_undo(
    spark, settings, stream, view, shop, rows, redone, batch, asked
):
    play(shop)
    batch()
    VIEWS[view.name] = replace(view, where=WITHOUT_FRONT_PAGE)
    replay = redone(asked(), until="approved")
    shop.view("meanwhile", 65, page="/cart")
    shop.flush()
    batch()
    run.promote(spark, settings, replay.id, "run")
    gold = f"gold.{view.name}"
    assert counts(rows(gold))["10:01", "/cart"] == 2
    shop.view("afterwards", 125, page="/cart")
    shop.flush()
    batch()
    assert run.undo(spark, settings, replay.id, "run", "tester").kept == {view.name: 1}
    after = counts(rows(gold))
    assert after["10:02", "/cart"] == 2, "a row that came after the promotion is not lost by undoing it"
    assert after["10:01", "/"] == 2


def counts(rows):
    return {(f"{r['window_start']:%H:%M}", r["page"]): r["views"] for r in rows}


def test_a_replay_that_is_open_excludes_others_and_backfills_by_name(
    spark, settings, stream, view, shop, opened, batch, asked
):
    play(shop)
    batch()
    waiting = opened(asked((0, 10)))
    for refused in (asked((5, 30)), asked((0, 5))):
        with pytest.raises(intervals.IntervalHeld, match=waiting.id):
            opened(refused)
    hour = {f"gold.{view.name}": (START, START.replace(hour=11))}
    with pytest.raises(intervals.IntervalHeld, match=waiting.id), intervals.backfilling(settings, "manual__1", hour):
        pass
    beside = opened(asked((10, 30)))
    for replay in (waiting, beside):
        run.discard(spark, settings, replay.id, "run", "tester")
    with intervals.backfilling(settings, "manual__1", hour):
        with pytest.raises(intervals.IntervalHeld, match="manual__1"):
            opened(asked((0, 10)))
        rebuild(spark, settings, view, START, START.replace(hour=11), "manual__1")
    with pytest.raises(ReplayRefused, match="discarded"):
        run.promote(spark, settings, waiting.id, "run")


def test_a_backfill_that_died_holds_nothing(settings, view):
    table = f"gold.{view.name}"
    hour = {table: (START, START.replace(hour=11))}
    holding = f"""
import os
from datetime import datetime, UTC
from lockstep import settings
from lockstep.control import intervals
hour = {{"{table}": (datetime(2026, 11, 10, 10, tzinfo=UTC), datetime(2026, 11, 10, 11, tzinfo=UTC))}}
with intervals.backfilling(settings.load(), "dies", hour):
    print("held", flush=True)
    os.kill(os.getpid(), 9)
"""
    died = subprocess.run([sys.executable, "-c", holding], capture_output=True, text=True, timeout=60)
    assert (died.stdout.strip(), died.returncode) == ("held", -9)
    patiently = Retrying(
        stop=stop_after_delay(10), wait=wait_fixed(0.1), retry=retry_if_exception_type(intervals.IntervalHeld)
    )
    patiently(intervals.claim, settings, "after-it", hour)
    intervals.release(settings, "after-it")


def test_neither_a_rule_that_does_not_hold_nor_a_dry_run_changes_anything(
    spark, settings, stream, view, shop, rows, redone, batch, asked
):
    play(shop)
    batch()
    before = digest(settings, f"gold.{view.name}")
    VIEWS[view.name] = replace(view, where=WITHOUT_FRONT_PAGE)
    replay = redone(asked(approve="by_rule", max_changed_percent=50), until="compared")
    with pytest.raises(ReplayRefused, match="4 of 4 windows would change"):
        run.approve_by_rule(spark, settings, replay.id, "run")
    with pytest.raises(ReplayRefused, match="not approved"):
        run.promote(spark, settings, replay.id, "run")
    run.discard(spark, settings, replay.id, "run", "tester")
    dry = redone(asked(dry_run=True), until="compared")
    assert dry.state == "discarded"
    assert [t for t in lake.tables(settings) if replay.id in t or dry.id in t] == []
    assert digest(settings, f"gold.{view.name}") == before
    stages = {r["stage"] for r in rows("ops.replays") if r["replay"] == dry.id}
    assert stages == {"planned", "shadowed", "compared", "discarded"}


@pytest.mark.slow
def test_a_promotion_that_another_run_has_overtaken_writes_nothing(
    spark, settings, stream, view, shop, redone, batch, asked, monkeypatch
):
    """Leases are lost without notice when PostgreSQL restarts. The roll-up here does not see the promotion's."""
    play(shop)
    batch()
    VIEWS[view.name] = replace(view, where=WITHOUT_FRONT_PAGE)
    replay = redone(asked(), until="approved")
    catch_up = promote._caught_up

    def overtaken(*arguments):
        found = catch_up(*arguments)
        shop.view("meanwhile", 65, page="/cart")
        shop.flush()
        with monkeypatch.context() as patch:
            patch.setattr(rollup, "lease", lambda *_: nullcontext())
            batch()
        return found

    monkeypatch.setattr(promote, "_caught_up", overtaken)
    with pytest.raises(Overtaken):
        run.promote(spark, settings, replay.id, "run")
    newest = ledger.latest(settings, f"gold.{view.name}")
    assert newest.totals["counted"] == 14, "the roll-up's rows are there"
    monkeypatch.setattr(promote, "_caught_up", catch_up)
    run.promote(spark, settings, replay.id, "again")
    assert ledger.latest(settings, f"gold.{view.name}").totals["counted"] == 14
