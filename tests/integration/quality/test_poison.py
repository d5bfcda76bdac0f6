"""Where each poisoned class ends, layer by layer. The table is in ``docs/quality.md``, and this test says what it must be."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from confluent_kafka import KafkaException, Producer
from tests.support.paths import CHECKOUT
from tests.support.shop import START

from lockstep import service
from lockstep.batch import late
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.refine.silver import refine

DOCS = CHECKOUT / "docs" / "quality.md"
COLUMNS = {"count": "INT", "share": "DOUBLE", "amount": "DECIMAL(38,10)"}
HEADER = ("a record", "bronze", "silver", "gold and live", "what the user sees")
SQL = "'; DROP TABLE silver.page_views; --"


def event(name, **fields):
    """A sound event, in the first minute, whose page says which class it is of."""
    return {
        "event_id": name,
        "event_time": (START + timedelta(seconds=10)).isoformat(),
        "user_id": "u1",
        "page": f"/{name}",
    } | fields


def as_json(body):
    return json.dumps(body).encode()


# By class, the key and the value of its record. The twice sent id comes after the first one.
POISON = {
    "sound": (b"u1", as_json(event("sound"))),
    "bad UTF-8": (b"u1", as_json(event("bad UTF-8", page="/bad-??")).replace(b"??", b"\xff\xfe")),
    "truncated JSON": (b"u1", as_json(event("truncated JSON"))[:-20]),
    "null key": (None, as_json(event("null key"))),
    "wrong type": (b"u1", as_json(event("wrong type", count="many"))),
    "NaN": (b"u1", as_json(event("NaN", share=float("nan")))),
    "overflow of an INT": (b"u1", as_json(event("overflow", count=99_999_999_999))),
    "38 digits in a DECIMAL(38,10)": (
        b"u1",
        as_json(event("38 digits", amount="#")).replace(b'"#"', b"9" * 28 + b"." + b"9" * 10),
    ),
    "39 digits in a DECIMAL(38,10)": (
        b"u1",
        as_json(event("39 digits", amount="#")).replace(b'"#"', b"9" * 29 + b"." + b"9" * 10),
    ),
    "a date of 1970": (b"u1", as_json(event("1970", event_time="1970-01-01T00:00:00+00:00"))),
    "a date of 2099": (b"u1", as_json(event("2099", event_time="2099-12-31T00:00:00+00:00"))),
    "a known id with other content": (b"u1", as_json(event("sound", page="/other"))),
    "SQL in a string": (b"u1", as_json(event("SQL", page=SQL))),
}
BIG = "10 MB"


@pytest.fixture
def stream(stream, monkeypatch):
    """The stream, with a number of each kind that can overflow."""
    wider = replace(stream, columns={**stream.columns, **COLUMNS})
    monkeypatch.setitem(CONTRACTS, stream.name, wider)
    return wider


@pytest.fixture
def outcomes(spark, settings, stream, view, shop, rows):
    """What became of each class, as a row of the table."""
    for number, (key, value) in enumerate(POISON.values()):
        shop._send(value, key, 11 + number / 10, partition=0)
    refused = too_big(settings, stream)
    shop.heartbeat(900)
    shop.flush()
    ingest(spark, settings, stream, "test")
    refine(spark, settings, stream, "test")
    roll_up(spark, settings, view, "test")
    late.define(spark, settings, view)
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    found = Found(rows, stream, view)
    table = [(name, *found.layers(offset), found.seen(offset)) for offset, name in enumerate(POISON)]
    return [
        *table,
        (
            BIG,
            refused,
            "none",
            "none",
            "the producer gets the error; a topic of large records needs `max.message.bytes`",
        ),
    ]


def too_big(settings, stream):
    producer = Producer(confluent_config(settings) | {"message.max.bytes": 20_000_000, "log_level": 0})
    errors = []
    value = as_json(event("big", page="/" + "x" * 10_000_000))
    try:
        producer.produce(stream.topic, value, b"u1", partition=0, on_delivery=lambda error, _: errors.append(error))
        producer.flush(30)
    except KafkaException as error:
        errors.append(error.args[0])
    return f"refused by the broker: `{errors[0].name()}`"


class Found:
    """The rows of each layer, by the offset of the record."""

    def __init__(self, rows, stream, view):
        self.bronze = {row["offset"]: row for row in rows(f"bronze.{stream.name}") if row["partition"] == 0}
        self.silver = {row["_offset"]: row for row in rows(f"silver.{stream.name}")}
        self.reasons = {row["_offset"]: row["_reason"] for row in rows(f"quarantine.{stream.name}")}
        self.raw = {row["_offset"]: bytes(row["_value"]) for row in rows(f"quarantine.{stream.name}")}
        self.late = {row["_offset"] for row in rows(f"late.{view.name}")}
        self.gold = {row["page"]: row["views"] for row in rows(gold_of(view))}
        self.live = {row["page"]: row["views"] for row in rows(live_of(view))}

    def layers(self, offset):
        assert offset in self.bronze
        if offset in self.reasons:
            assert self.raw[offset] == bytes(self.bronze[offset]["value"])
            return "as it came", f"quarantine: `{self.reasons[offset]}`", "none"
        if offset not in self.silver:
            return "as it came", "duplicate", "none"
        if offset in self.late:
            return "as it came", "a row", "late: by the view's policy"
        page = self.silver[offset]["page"]
        assert self.gold[page] == self.live[page] == 1
        return "as it came", "a row", "counted"

    def seen(self, offset):
        if offset in self.reasons:
            return "the reason and the bytes: `lockstep quarantine show`"
        if offset not in self.silver:
            return "the first content stays; the count in `lockstep status`"
        row = self.silver[offset]
        if offset in self.late:
            return "`late.<view>` has it"
        if row["share"] is not None:
            return f"`{row['share']}`, as the producer said; `expect_column_values_to_be_between` puts it aside"
        if row["amount"] is not None:
            return f"`{row['amount']}`"
        if row["page"] == SQL:
            return "the text, as a text"
        return "the row"


def test_where_each_poisoned_class_ends_is_what_the_docs_say(outcomes):
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADER, ["---"] * len(HEADER), *outcomes)]
    table = "\n".join(lines)
    assert table in DOCS.read_text(), f"docs/quality.md must have this table:\n{table}"
