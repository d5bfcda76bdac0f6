"""Fifty replays over the demo's tables, while Airflow works on them too; and twenty backfills that race with live ingest."""

import os
import random
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F
from tests.support import races
from tests.support.digest import digest
from tests.support.shop import Shop

from lockstep import lake, ledger
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse, readers
from lockstep.replay.record import find

REPLAYS = int(os.environ.get("LOCKSTEP_SOAK_REPLAYS", "50"))
RACES = int(os.environ.get("LOCKSTEP_SOAK_RACES", "20"))
LAYERS = (["gold"], ["silver", "gold"], ["bronze", "silver", "gold"])


@pytest.mark.timeout(7200)
def test_replays_of_random_intervals_leave_identical_digests(demo, report):
    """Every second replay finds its interval of gold gone, and brings it back; the others may not change a window."""
    settings = demo.settings
    streams = [c for c in CONTRACTS.values() if ledger.latest(settings, Tables.of(c).log) and readers([c.name])]
    with connect(settings, "soak") as spark:
        for view in VIEWS.values():
            if not lake.exists(settings, gold_of(view)):
                roll_up(spark, settings, view, "soak")
        before = _digests(settings, streams)
        for n in range(REPLAYS):
            seed = random.SystemRandom().randrange(2**32)
            dice = random.Random(seed)
            chosen = dice.sample(streams, dice.randrange(1, 3))
            request = _random_request(dice, chosen, _arrivals(spark, settings, chosen[0]), seed, is_spoiled=n % 2 == 1)
            if n % 2 == 1:
                _spoil(spark, settings, request)
            spoiled = {t for t, digest_now in _digests(settings, chosen).items() if digest_now != before[t]}
            began = time.monotonic()
            replay = _redo(spark, settings, request)
            took = time.monotonic() - began
            same = _digests(settings, chosen).items() <= before.items()
            layers = "+".join(request.layers)
            report(f"| replay {n} | {seed} | {layers} | {took:.0f} | {request.topics} | {same} |")
            assert same, request
            assert bool(replay.compared.changed) == bool(spoiled), request
        assert _digests(settings, streams) == before


def _random_request(dice, streams, arrivals, seed, is_spoiled):
    """A replay of an interval of a minute to a day, of all views that read the streams."""
    first, last = arrivals
    start = first + (last - first) * dice.random()
    topics = [c.name for c in streams]
    return parse(
        {
            "reason": f"soak {seed}",
            "from": start,
            "to": min(start + timedelta(minutes=dice.randrange(1, 24 * 60)), datetime.now(UTC)),
            "topics": topics,
            "views": [view.name for view in readers(topics)],
            "layers": dice.choice(LAYERS),
            "approve": "by_rule",
            "max_changed_percent": 100 if is_spoiled else 0,
        }
    )


def _spoil(spark, settings, request):
    """Remove the rows of the interval from gold, as somebody might by mistake."""
    for name in request.views:
        table, interval = gold_of(VIEWS[name]), VIEWS[name].interval(request.start, request.end)
        with lease(settings, table, "soak"):
            spark.sql(f"DELETE FROM {table} WHERE {interval}")


def _arrivals(spark, settings, stream):
    """When the first and the last row of a stream came (UTC)."""
    rows = lake.read(spark, settings, Tables.of(stream).log)
    times = rows.agg(F.min("_arrival"), F.max("_arrival")).collect()[0]
    return [instant.replace(tzinfo=UTC) for instant in times]


def _redo(spark, settings, request):
    name = run.identify(request)
    run.open_replay(spark, settings, request, "soak", "soak", name)
    run.compute(spark, settings, name, "soak")
    run.compare(spark, settings, name, "soak")
    run.approve_by_rule(spark, settings, name, "soak")
    run.promote(spark, settings, name, "soak")
    return find(settings, name)


def _digests(settings, streams):
    """By table, of the streams and of the views that read them."""
    tables = [table for s in streams for table in (Tables.of(s).log, Tables.of(s).current) if table]
    tables += [gold_of(view) for view in readers([s.name for s in streams])]
    return {table: digest(settings, table) for table in tables}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(RACES))
def test_a_backfill_that_races_with_live_ingest_leaves_no_conflict_and_no_double_row(number, demo, report, monkeypatch):
    name, settings = f"page_views_{uuid.uuid4().hex[:8]}", demo.settings
    stream = replace(CONTRACTS["page_views"], name=name, topic=name)
    view = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{name[-8:]}", input=name)
    monkeypatch.setitem(CONTRACTS, name, stream)
    monkeypatch.setitem(VIEWS, view.name, view)
    ensure_topics(settings, {name: stream})
    seed = random.SystemRandom().randrange(2**32)
    began = time.monotonic()
    with connect(settings, "soak") as spark:
        shop = Shop(settings, stream)
        shop.view("first", 0)
        shop.flush()
        ingest(spark, settings, stream, "soak")
        refine(spark, settings, stream, "soak")
        roll_up(spark, settings, view, "soak")
        expected = races.race(settings, stream, view, shop, random.Random(seed), rounds=5)
        expected["10:00", "/"] += 1
        right = races.shown(spark, view) == expected and not races.doubled(spark, stream, view)
    report(f"| race {number} | {seed} | - | {time.monotonic() - began:.0f} | {expected.total()} | {right} |")
    assert right, seed
