"""The same events in JSON, Avro and Protobuf are the same rows: with Spark, without it, and live."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.formats import (
    EVENTS,
    avro_schema,
    in_avro,
    in_json,
    in_protobuf,
    page_view,
    page_views,
    proto_schema,
)
from tests.support.shop import START, Shop

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of
from lockstep.formats.confluent import framed
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
# In the other formats with a field that the contract does not name.
JSON = page_views("page_views")
AVRO = replace(JSON, format="avro", schema=avro_schema(JSON.columns, campaign="string"))
PROTOBUF = replace(
    JSON, format="protobuf", schema=proto_schema(JSON.columns, campaign="optional string"), message="shop.PageView"
)


def parsed(spark, contract, values):
    rows = [(contract.topic, 0, offset, START, None, value, None) for offset, value in enumerate(values)]
    found = with_unknown(parse(spark.createDataFrame(rows, BRONZE), contract), contract).drop("_value")
    return [str(row) for row in found.orderBy("_offset").collect()]


@hypothesis_settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(EVENTS, min_size=50, max_size=80))
def test_the_same_events_are_the_same_rows_in_every_format(spark, events):
    in_json_rows = parsed(spark, JSON, map(in_json, events))
    assert parsed(spark, AVRO, [in_avro(AVRO.schema, event) for event in events]) == in_json_rows
    # Protobuf does not tell a list that is empty from one that is not there.
    lists = [event | {"tags": event.get("tags") or []} for event in events]
    in_protobuf_rows = parsed(spark, PROTOBUF, [in_protobuf(PROTOBUF.schema, event) for event in events])
    assert in_protobuf_rows == parsed(spark, JSON, map(in_json, lists))


def test_json_in_the_wire_format_is_read_without_its_header_and_without_a_registry(spark):
    values = [in_json(page_view(number)) for number in range(3)]
    in_wire_format = replace(JSON, wire_format="confluent")
    assert parsed(spark, in_wire_format, [framed(7, value) for value in values]) == parsed(spark, JSON, values)
    wrong = [*parsed(spark, in_wire_format, values[:1]), *parsed(spark, JSON, [framed(7, values[0])])]
    for row, reason in zip(wrong, ("no magic byte", "in Confluent's wire format"), strict=True):
        assert reason in row


@pytest.fixture
def streams(settings, monkeypatch):
    """A stream in Avro and one in Protobuf, each with a topic and a view of its own."""
    suffix = uuid.uuid4().hex[:8]
    both = []
    for contract in (AVRO, PROTOBUF):
        named = replace(contract, name=f"{contract.format}_{suffix}", topic=f"{contract.format}_{suffix}")
        ensure_topics(settings, {named.name: named})
        monkeypatch.setitem(CONTRACTS, named.name, named)
        both.append(named)
    view = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{suffix}", input=both[1].name)
    monkeypatch.setitem(VIEWS, view.name, view)
    return both, view


def send(settings, contract, write):
    """Good events, one of them twice, and broken ones: by the reason, the bytes of each."""
    shop = Shop(settings, contract)

    def encoded(number, **fields):
        return write(contract.schema, page_view(number, **fields))

    for number in range(30):
        shop.raw(encoded(number, page=f"/{number % 3}", campaign="spring"), number + 0.5)
    broken = {"malformed": encoded(31)[:-1], "empty": b"", "missing page": encoded(32, page=None)}
    broken["in Confluent's wire format, which the contract does not say"] = framed(7, encoded(33))
    for value in broken.values():
        shop.raw(value, 33)
    shop.raw(encoded(1), 33)
    shop.heartbeat(900)
    shop.flush()
    return broken


def test_both_formats_run_from_end_to_end_and_live(spark, settings, streams, rows, monkeypatch):
    (avro, protobuf), view = streams
    for contract, write, limit in ((avro, in_avro, 20_000), (protobuf, in_protobuf, 0)):
        broken = send(settings, contract, write)
        monkeypatch.setattr(writes, "SMALL_ROWS", limit)
        ingest(spark, settings, contract, "run")
        entry = refine(spark, settings, contract, "run")
        assert entry.counts == {"silver": 30, "duplicates": 1, "quarantined": len(broken), "markers": 3}
        assert entry.unknown == {"campaign": 30}
        found = {row["_reason"]: bytes(row["_value"]) for row in rows(f"quarantine.{contract.name}")}
        assert found == broken
    roll_up(spark, settings, view, "run")
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    batch, live = ({(row["page"], row["views"]) for row in rows(table)} for table in (gold_of(view), live_of(view)))
    assert batch == live == {("/0", 10), ("/1", 10), ("/2", 10)}
