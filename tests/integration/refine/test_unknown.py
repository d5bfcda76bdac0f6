"""Fields that a contract does not name: silver has their names, each run counts them, and their values stay in bronze."""

import json
import logging
from dataclasses import replace
from datetime import timedelta

from tests.support.records import change_record
from tests.support.shop import START, Shop

from lockstep import ledger
from lockstep.contracts import CONTRACTS
from lockstep.ingest import bronze
from lockstep.refine import silver


def refine(spark, settings, stream):
    bronze.ingest(spark, settings, stream, "run")
    return silver.refine(spark, settings, stream, "run")


def as_text(event_id, second, colon, **fields):
    """A page view as a serializer writes it that puts this between a name and its value."""
    time = (START + timedelta(seconds=second)).isoformat()
    event = {"event_id": event_id, "event_time": time, "user_id": "u1", "page": "/", "referrer": None} | fields
    return json.dumps(event, separators=(",", colon)).encode()


def test_unknown_fields_of_an_event_are_named_and_counted(spark, settings, stream, shop, rows, either_way, caplog):
    caplog.set_level(logging.WARNING, "lockstep.refine")
    shop.view("plain", 0, device=None, country='"campaign": null, "utm":1')
    shop.view("one", 1, campaign="spring")
    shop.view("one", 2, campaign="the same again")
    shop.view("more", 3, utm={"source": "mail", "page": "/"}, campaign=None)
    shop.raw(as_text("spaces", 3, " : ", campaign="spring"), 4)
    shop.raw(as_text("twice", 3, ":", campaign="spring")[:-1] + b',"campaign":"autumn"}', 4)
    shop.view("keys", 4, **{"ann@example.org": 1, "+49 30 1234": 2, "Page": "/"})
    shop.view("bad", 5, page=None, campaign="spring")
    shop.raw(b'{"event_id": "broken", "campaign', 6)
    shop.flush()
    first = refine(spark, settings, stream)
    assert first.unknown == {"campaign": 3, "utm": 1, "Page": 1, "*": 1}
    assert "fields that the contract does not name: *, Page, campaign, utm" in caplog.text
    found = {row["event_id"]: row["_unknown"] for row in rows(f"silver.{stream.name}")}
    assert found == {
        "plain": None,
        "one": '["campaign"]',
        "more": '["utm"]',
        "keys": '["*","Page"]',
        "spaces": '["campaign"]',
        "twice": '["campaign"]',
    }
    caplog.clear()
    shop.view("two", 7, campaign="autumn")
    shop.flush()
    assert refine(spark, settings, stream).unknown == first.unknown | {"campaign": 4}
    said_again = [record.message for record in caplog.records if record.name.startswith("lockstep")]
    assert said_again == [], "it was said once"
    (newest, *_) = ledger.entries(settings, f"silver.{stream.name}")
    assert newest.totals["silver"] == 7


def test_a_column_that_a_source_table_has_and_the_contract_does_not_is_an_unknown_field(spark, settings, stream, rows):
    contract = replace(CONTRACTS["orders"], name=stream.name, topic=stream.topic, partitions=3)
    row = {"order_id": "1", "kind": "sale", "ordered_at": START.isoformat(), "channel": "web"}
    value = change_record(contract.name, 1, 1, None, row).value
    shop = Shop(settings, contract)
    shop.raw(json.dumps(value).encode(), 1, key="1")
    shop.flush()
    assert refine(spark, settings, contract).unknown == {"channel": 1}
    for table in (f"silver.{contract.name}", f"silver.{contract.name}_changes"):
        assert [row["_unknown"] for row in rows(table)] == ['["channel"]']
