"""With Spark or without it, the same log gives the same rows, counts and ledgers, however it is cut into runs."""

import uuid
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from tests.support.digest import digest
from tests.support.scenario import changes, events, send
from tests.support.slow import slow

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.ingest import bronze
from lockstep.kafka_clients import ensure_topics
from lockstep.lake import writes
from lockstep.refine import silver, small_slice


@pytest.fixture
def twins(settings, request, monkeypatch):
    """Two contracts over one topic, which has a scenario of some minutes."""
    name, suffix = request.param, uuid.uuid4().hex[:8]
    topic = replace(CONTRACTS[name], topic=f"{name}_{suffix}", partitions=3)
    ensure_topics(settings, {topic.topic: topic})
    make = events if topic.kind == "events" else changes
    records = make(name, topic, 3, 10, 2.0)
    send(settings, {name: topic}, records, max(record.arrival for record in records) + timedelta(hours=1))
    both = [replace(topic, name=f"{name}_{way}_{suffix}") for way in ("small", "spark")]
    for contract in both:
        monkeypatch.setitem(CONTRACTS, contract.name, contract)
    return both


def drain(spark, settings, contract, monkeypatch, small):
    """Ingest and refine to the end of the log, in runs whose sizes chance decides, the same ones every time."""
    dice, sizes = Random(7), []
    monkeypatch.setattr(writes, "SMALL_ROWS", 20_000 if small else 0)
    monkeypatch.setattr(small_slice, "AT_ONCE", 30)
    while True:
        limited = settings.model_copy(update={"max_offsets_per_run": dice.randrange(20, 200)})
        entry = bronze.ingest(spark, limited, contract, "run")
        refined = silver.refine(spark, limited, contract, "run")
        if not entry and not refined:
            return sizes
        sizes.append((entry and entry.rows, refined and refined.counts))


@pytest.mark.parametrize("twins", ["page_views", slow("products"), "users"], indirect=True)
def test_a_small_slice_gives_what_spark_gives(spark, settings, twins, monkeypatch):
    small, large = twins
    runs = [drain(spark, settings, contract, monkeypatch, contract is small) for contract in twins]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 3
    mine, other = Tables.of(small), Tables.of(large)
    assert digest(settings, mine.bronze) == digest(settings, other.bronze)
    assert digest(settings, mine.log) == digest(settings, other.log)
    if mine.current:
        assert digest(settings, mine.current) == digest(settings, other.current)
    assert digest(settings, mine.quarantine, without=["_run_id"]) == digest(
        settings, other.quarantine, without=["_run_id"]
    )
    engines = [{c.operation for c in lake.commits(settings, tables.bronze)} for tables in (mine, other)]
    assert engines[0] == engines[1]
    for of_mine, of_other in ((mine.bronze, other.bronze), (mine.log, other.log)):
        for of_small, of_spark in zip(*(ledger.entries(settings, t) for t in (of_mine, of_other)), strict=True):
            assert of_small.ranges == of_spark.ranges
            assert of_small.newest == of_spark.newest
            assert of_small.rows == of_spark.rows
            assert of_small.totals == of_spark.totals
