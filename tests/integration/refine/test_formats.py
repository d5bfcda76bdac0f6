"""The same events in JSON and Avro are the same rows: with Spark, without it, and live."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.digest import digest
from tests.support.formats import EVENTS, avro_schema, in_avro, in_json, page_view, page_views
from tests.support.shop import START, Shop

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.lake import writes
from lockstep.refine.parse import parse
from lockstep.refine.silver import refine
from lockstep.refine.unknown import with_unknown

BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
# Fields that the contract does not name.
MORE = {"campaign": "string"}
JSON = page_views("page_views")
AVRO = replace(JSON, format="avro", schema=avro_schema(JSON.columns, **MORE))


def parsed(spark, contract, values):
    rows = [(contract.topic, 0, offset, START, None, value, None) for offset, value in enumerate(values)]
    found = with_unknown(parse(spark.createDataFrame(rows, BRONZE), contract), contract).drop("_value")
    return [str(row) for row in found.orderBy("_offset").collect()]


@hypothesis_settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(EVENTS, min_size=50, max_size=80))
def test_the_same_events_are_the_same_rows_in_every_format(spark, events):
    in_another_format = parsed(spark, AVRO, [in_avro(AVRO.schema, event) for event in events])
    assert in_another_format == parsed(spark, JSON, map(in_json, events))


@pytest.fixture
def sent(settings, monkeypatch):
    """A topic in Avro with good, late and broken records, which two streams read; each has a view."""
    suffix = uuid.uuid4().hex[:8]
    topic = replace(AVRO, topic=f"avro_{suffix}")
    ensure_topics(settings, {topic.topic: topic})
    shop = Shop(settings, topic)
    for number in range(30):
        shop.raw(in_avro(topic.schema, page_view(number, page=f"/{number % 3}", campaign="spring")), number + 0.5)
    whole = in_avro(topic.schema, page_view(31))
    broken = {
        "malformed": whole[:-1],
        "not UTF-8": whole.replace(b"e31", b"e\xff1"),
        "empty": b"",
        "missing page": None,
    }
    broken["missing page"] = in_avro(topic.schema, {**page_view(32), "page": None})
    for value in broken.values():
        shop.raw(value, 33)
    shop.raw(in_avro(topic.schema, page_view(1)), 33)
    shop.heartbeat(900)
    shop.flush()
    both = [replace(topic, name=f"avro_{way}_{suffix}") for way in ("small", "spark")]
    views = [replace(VIEWS["page_views_per_minute"], name=f"per_minute_{c.name}", input=c.name) for c in both]
    for contract, view in zip(both, views, strict=True):
        monkeypatch.setitem(CONTRACTS, contract.name, contract)
        monkeypatch.setitem(VIEWS, view.name, view)
    return both, views, broken


def test_avro_runs_from_end_to_end_with_spark_and_without_it_and_live(spark, settings, sent, rows, monkeypatch):
    (small, large), (view, _), broken = sent
    for contract, limit in ((small, 20_000), (large, 0)):
        monkeypatch.setattr(writes, "SMALL_ROWS", limit)
        ingest(spark, settings, contract, "run")
        entry = refine(spark, settings, contract, "run")
        assert entry.counts == {"silver": 30, "duplicates": 1, "quarantined": len(broken), "markers": 3}
        assert entry.unknown == {"campaign": 30}
        found = {row["_reason"]: bytes(row["_value"]) for row in rows(f"quarantine.{contract.name}")}
        assert found == broken
    assert digest(settings, f"silver.{small.name}") == digest(settings, f"silver.{large.name}")
    roll_up(spark, settings, view, "run")
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    batch, live = ({(row["page"], row["views"]) for row in rows(table)} for table in (gold_of(view), live_of(view)))
    assert batch == live == {("/0", 10), ("/1", 10), ("/2", 10)}
