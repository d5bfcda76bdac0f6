"""Records in Confluent's wire format, by a real registry that is there, knows too little, or is away."""

import json
import uuid
from dataclasses import replace

import pytest
from pyspark.errors import StreamingQueryException
from tenacity import retry, retry_if_exception_type, stop_after_attempt
from tests.support.digest import digest
from tests.support.formats import avro_schema, in_avro, page_view, page_views
from tests.support.live import run_live
from tests.support.shop import Shop

from lockstep.batch.rollup import roll_up
from lockstep.cli.compatible import _refused_by_registry
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of
from lockstep.formats.confluent import framed
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.lake import writes
from lockstep.refine.silver import refine
from lockstep.refine.writers import writers_of
from lockstep.schema_registry import RegistryDown
from lockstep.status.gather import gather

LIKE = page_views("page_views")
COLUMNS = LIKE.columns | {"channel": "STRING"}


def contract_schema():
    """That of all columns, of which one has a default and another had another name."""
    schema = json.loads(avro_schema(LIKE.columns))
    schema["fields"].append({"name": "channel", "type": "string", "default": "web"})
    next(field for field in schema["fields"] if field["name"] == "referrer")["aliases"] = ["came_from"]
    return json.dumps(schema)


def older_schema():
    """Without the columns that came later; the total was an int, and the referrer had another name."""
    columns = {name: kind for name, kind in LIKE.columns.items() if name not in ("seen_at", "tags", "referrer")}
    return avro_schema(columns | {"total": "INT"}, came_from="string")


NEWER = avro_schema(LIKE.columns, campaign="string", channel="string")


@pytest.fixture
def streams(settings, monkeypatch):
    """Two streams over one topic in the wire format, and a view of the first one."""
    suffix = uuid.uuid4().hex[:8]
    topic = replace(
        LIKE,
        topic=f"framed_{suffix}",
        columns=COLUMNS,
        format="avro",
        schema=contract_schema(),
        wire_format="confluent",
        partitions=1,
    )
    ensure_topics(settings, {topic.topic: topic})
    both = [replace(topic, name=f"framed_{way}_{suffix}") for way in ("small", "spark")]
    view = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{suffix}", input=both[0].name)
    monkeypatch.setitem(VIEWS, view.name, view)
    for contract in both:
        monkeypatch.setitem(CONTRACTS, contract.name, contract)
    return both, view


def refined(spark, settings, contract, rows):
    ingest(spark, settings, contract, "run")
    refine(spark, settings, contract, "run")
    return {row["event_id"]: row for row in rows(f"silver.{contract.name}")}


def test_each_record_is_read_by_the_schema_it_was_written_with_and_the_registry_may_be_away(
    spark, settings, streams, registry, door, rows, monkeypatch
):
    (small, large), view = streams
    with_registry = settings.model_copy(update={"schema_registry_url": door.url})
    subject = f"{small.topic}-value"
    old, new, other = (registry.register(subject, s) for s in (older_schema(), NEWER, avro_schema({"event_id": "INT"})))
    of_another_kind = registry.register(
        f"{subject}-proto", 'syntax = "proto3"; message Other { string a = 1; }', "PROTOBUF"
    )
    shop = Shop(settings, small)

    def send(number, schema_id, schema, second, **fields):
        shop.raw(framed(schema_id, in_avro(schema, page_view(number, **fields))), second)

    send(1, old, older_schema(), 1, total=7, came_from="direct")
    send(2, new, NEWER, 2, campaign="spring", channel="app", total=2**40, referrer="shop")
    broken = {
        "the registry has no schema 99999": framed(99999, in_avro(NEWER, page_view(3))),
        "no magic byte": b"\x01" + framed(new, in_avro(NEWER, page_view(4)))[1:],
        "malformed": framed(new, in_avro(NEWER, page_view(5)))[:-1],
        "written with a schema that the contract's cannot read": framed(other, b"\x02\x08"),
        f"schema {of_another_kind} is PROTOBUF": framed(of_another_kind, b"\x00\x0a\x01a"),
    }
    for value in broken.values():
        shop.raw(value, 3)
    shop.flush()

    # Nothing is known yet, and nobody answers: the run waits, and has taken nothing.
    for limit in (20_000, 0):
        monkeypatch.setattr(writes, "SMALL_ROWS", limit)
        ingest(spark, with_registry, small, "run")
        with pytest.raises(RegistryDown) as refusal:
            refine(spark, with_registry, small, "run")
        for told in (small.topic, f"id {old}", door.url, "goes on by itself"):
            assert told in str(refusal.value)

    with door.open():
        for contract, limit in ((small, 20_000), (large, 0)):
            monkeypatch.setattr(writes, "SMALL_ROWS", limit)
            found = refined(spark, with_registry, contract, rows)
            assert {row["_reason"]: bytes(row["_value"]) for row in rows(f"quarantine.{contract.name}")} == broken
    assert (found["e1"]["total"], found["e1"]["referrer"], found["e1"]["channel"]) == (7, "direct", "web")
    assert (found["e2"]["total"], found["e2"]["referrer"], found["e2"]["channel"]) == (2**40, "shop", "app")
    assert [found[event]["_unknown"] for event in ("e1", "e2")] == [None, '["campaign"]']
    assert digest(settings, f"silver.{small.name}") == digest(settings, f"silver.{large.name}")

    # Away again: what is known goes on, and another stream over the same records has the same rows.
    monkeypatch.setattr(writes, "SMALL_ROWS", 20_000)
    again = replace(small, name=f"{small.name}_again")
    monkeypatch.setitem(CONTRACTS, again.name, again)
    refined(spark, with_registry, again, rows)
    assert digest(settings, f"silver.{again.name}") == digest(settings, f"silver.{small.name}")

    # A new schema: batch and live stop for it, and go on when the registry is back.
    newest = registry.register(subject, avro_schema(LIKE.columns, channel="string", mood="string"))
    send(7, newest, avro_schema(LIKE.columns, channel="string", mood="string"), 8, channel="app", mood="good")
    shop.heartbeat(900)
    shop.flush()
    with pytest.raises(RegistryDown):
        refined(spark, with_registry, small, rows)
    assert "unreachable:schema-registry" in {problem.key for problem in gather(with_registry, {}).problems}
    with pytest.raises(StreamingQueryException, match=f"the schema registry {door.url}"):
        run_live(with_registry, view)
    with door.open():
        assert refined(spark, with_registry, small, rows)["e7"]["_unknown"] == '["mood"]'
        # The service, too, starts a query twice of which a batch has run again: see test_alerts.py of the sinks.
        retry(retry=retry_if_exception_type(StreamingQueryException), stop=stop_after_attempt(2), reraise=True)(
            run_live
        )(with_registry, view)
    roll_up(spark, settings, view, "run")
    batch, live = (
        {(row["page"], row["window_start"], row["views"]) for row in rows(t)} for t in (gold_of(view), live_of(view))
    )
    assert batch == live
    assert sum(views for *_, views in batch) == 3


def test_an_id_that_was_unknown_is_asked_for_again_but_not_by_a_run_that_is_done_again(settings, registry, door):
    subject = f"known_{uuid.uuid4().hex[:8]}"
    contract = replace(LIKE, topic=subject, format="avro", schema=avro_schema(LIKE.columns), wire_format="confluent")
    with_registry = settings.model_copy(update={"schema_registry_url": door.url})
    late = registry.register(subject, avro_schema({"event_id": "STRING"}, mood="string")) + 1
    values = [framed(late, b""), None, b"", b"plain", b"\x00\x01"]
    with door.open():
        assert writers_of(with_registry, contract, values).schema(late) is None
        schema = avro_schema({"event_id": "STRING"}, place="string")
        assert registry.register(f"{subject}-late", schema) == late
        assert writers_of(with_registry, contract, values, ask_again=False).schema(late) is None
    assert writers_of(with_registry, contract, values).schema(late) is None, "the registry is away"
    with door.open():
        assert json.loads(writers_of(with_registry, contract, values).schema(late).text) == json.loads(schema)
    assert writers_of(with_registry, contract, values).schema(late) is not None, "it is kept"


def test_while_the_registry_is_away_other_streams_are_refined(spark, settings, streams, stream, shop, door):
    (framed_one, _), _ = streams
    with_registry = settings.model_copy(update={"schema_registry_url": door.url})
    other = Shop(settings, framed_one)
    other.raw(framed(12345, b"x"), 1)
    shop.view("e1", 1)
    for producer in (other, shop):
        producer.flush()
    for contract in (framed_one, stream):
        ingest(spark, with_registry, contract, "run")
    assert refine(spark, with_registry, stream, "run").counts["silver"] == 1
    with pytest.raises(RegistryDown):
        refine(spark, with_registry, framed_one, "run")


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_the_registry_says_before_it_ships_that_a_schema_may_not_be_the_next_one(settings, registry, form):
    schemas = {
        "avro": ['["null", "string"]', '["null", "string", "long"]', '"boolean"'],
        "protobuf": ["string a = 1;", "string a = 1; string b = 2;", "int64 a = 1;"],
    }[form]
    first, kept, broken = (schema_of(form, kind) for kind in schemas)
    topic = f"compatible_{uuid.uuid4().hex[:8]}"
    contract = replace(LIKE, topic=topic, format=form, wire_format="confluent")
    with_registry = settings.model_copy(update={"schema_registry_url": registry.url})

    def refused(schema):
        return _refused_by_registry(with_registry, replace(contract, schema=schema))

    assert refused(first) == [], "nothing is registered yet"
    registry.register(f"{topic}-value", first, form.upper())
    registry.compatibility(f"{topic}-value", "BACKWARD")
    assert refused(kept) == []
    assert f"the registry refuses its schema for {topic}-value" in "".join(refused(broken))


def schema_of(form, kind):
    if form == "avro":
        return f'{{"type": "record", "name": "A", "fields": [{{"name": "a", "type": {kind}}}]}}'
    return f'syntax = "proto3"; message A {{ {kind} }}'
