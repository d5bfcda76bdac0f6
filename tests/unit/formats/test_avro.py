"""Values of Avro are read whole or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.formats import COLUMNS, EVENTS, avro_schema, in_avro, page_views

from lockstep.formats import Kind, SchemaInvalid, Undecodable, codec
from lockstep.formats.json_text import json_text

CONTRACT = page_views("views")
SCHEMA = avro_schema(CONTRACT.columns)


@given(EVENTS)
def test_what_is_written_is_what_is_read(event):
    avro = codec("avro", SCHEMA)
    read = avro.decode(in_avro(SCHEMA, event))
    assert {name: str(value) for name, value in read.items()} == {
        name: str(event.get(name)) for name in CONTRACT.columns
    }


@given(EVENTS)
def test_the_writer_takes_what_json_has(event):
    avro = codec("avro", SCHEMA)
    fields = json.loads(json_text(event))
    assert str(avro.decode(avro.encode(fields))) == str(avro.decode(in_avro(SCHEMA, event)))


@given(EVENTS, st.data())
def test_a_value_that_is_cut_short_is_refused(event, data):
    whole = in_avro(SCHEMA, event)
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Undecodable):
        codec("avro", SCHEMA).decode(whole[:end])


@given(st.binary())
def test_any_bytes_are_read_or_refused(value):
    try:
        assert {*codec("avro", SCHEMA).decode(value)} == {*CONTRACT.columns}
    except Undecodable as error:
        assert str(error) in ("malformed", "not UTF-8")


def test_more_bytes_than_the_value_has_are_refused():
    with pytest.raises(Undecodable, match="malformed"):
        codec("avro", SCHEMA).decode(in_avro(SCHEMA, {"event_id": "e1"}) + b"x")


def test_each_field_says_what_it_has():
    kinds = codec("avro", avro_schema(COLUMNS, mixed="string")).kinds()
    assert kinds["count"] is Kind.INTEGER
    assert kinds["amount"] is Kind.DECIMAL
    assert kinds["seen_at"] is Kind.TIME


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no Avro schema"),
        ('{"type": "record", "name": "x", "fields": [{"name": "a", "type": "Missing"}]}', "no Avro schema"),
        ('"string"', "no record"),
        ("[]", "no record"),
    ],
)
def test_what_is_no_schema_is_named(text, reason):
    with pytest.raises(SchemaInvalid, match=reason):
        codec("avro", text)
