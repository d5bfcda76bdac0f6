"""Values of Protobuf: what a message has, and what another one has."""

import json
from math import inf, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.formats import COLUMNS, EVENTS, in_protobuf, page_views, proto_schema

from lockstep.formats import Kind, SchemaInvalid, Undecodable, codec
from lockstep.formats.json_text import json_text

CONTRACT = page_views("views")
SCHEMA = proto_schema(CONTRACT.columns)
VIEW = "shop.PageView"


def proto():
    return codec("protobuf", SCHEMA, VIEW)


@given(EVENTS)
def test_what_is_written_is_what_is_read(event):
    wanted = json.loads(json_text({name: event.get(name) for name in CONTRACT.columns}))
    # A list that is empty and one that is not there are the same.
    wanted["tags"] = wanted["tags"] or []
    assert str(json.loads(json_text(proto().decode(in_protobuf(SCHEMA, event))))) == str(wanted)


@given(EVENTS)
@example({"event_id": "e1", "share": nan})
@example({"event_id": "e1", "share": -inf})
def test_the_writer_takes_what_json_has(event):
    fields = json.loads(json_text(event))
    assert str(proto().decode(proto().encode(fields))) == str(proto().decode(in_protobuf(SCHEMA, event)))


@given(st.binary())
def test_any_bytes_are_read_or_refused(value):
    try:
        assert {*CONTRACT.columns} <= {*proto().decode(value)}
    except Undecodable as error:
        assert str(error) == "malformed"


def test_a_field_that_the_message_lacks_is_named_by_the_schema_of_its_writer_or_by_its_number():
    newer = proto_schema(CONTRACT.columns, campaign="string")
    value = in_protobuf(newer, {"event_id": "e1", "campaign": "spring"})
    number = len(CONTRACT.columns) + 1
    assert proto().decode(value)[f"#{number}"] == ""
    prefix = codec("protobuf", newer, VIEW).framed_prefix()
    assert proto().decode_framed(prefix + value, newer)["campaign"] == ""


def test_a_field_whose_bytes_mean_something_else_is_refused_not_misread():
    other = SCHEMA.replace("sint32 count", "string count")
    value = in_protobuf(other, {"event_id": "e1", "count": "many"})
    with pytest.raises(Undecodable, match="cannot read"):
        proto().decode_framed(proto().framed_prefix() + value, other)


def test_the_indexes_say_which_message_of_the_file_it_is():
    assert proto().framed_prefix() == bytes([2, 2])
    assert codec("protobuf", SCHEMA).framed_prefix() == b"\0"
    with pytest.raises(Undecodable, match=r"a message shop\.Other"):
        proto().decode_framed(b"\0", SCHEMA)
    for broken in (b"", b"\x02", b"\x02\x20", b"\xff" * 11, b"\x01", b"\xfe\xff\xff\xff\xff\x01"):
        with pytest.raises(Undecodable, match="malformed"):
            proto().decode_framed(broken, SCHEMA)


def test_a_message_in_a_message_is_found_by_its_name():
    nested = (
        'syntax = "proto3"; message A { message B { int32 x = 1; } message C { B b = 1; map<string, int64> m = 2; } }'
    )
    c = codec("protobuf", nested, "A.C")
    assert c.framed_prefix() == bytes([4, 0, 2])
    assert c.kinds() == {"b": Kind.RECORD, "m": Kind.MAP}
    value = c.encode({"b": {"x": 3}, "m": {"k": 2**40}})
    assert c.decode_framed(c.framed_prefix() + value, nested) == {"b": {"x": 3}, "m": {"k": 2**40}}


def test_each_field_says_what_it_has():
    kinds = codec("protobuf", proto_schema(COLUMNS), VIEW).kinds()
    assert (kinds["amount"], kinds["seen_at"], kinds["total"]) == (Kind.DECIMAL, Kind.TIME, Kind.LONG)
    assert kinds["tags"] is Kind.ARRAY


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        ("message {", "", "cannot be compiled: schema.proto:1"),
        ('syntax = "proto3"; import "/etc/passwd"; message A {}', "", "cannot be compiled"),
        ('syntax = "proto3";', "", "has no message"),
        ('syntax = "proto3"; message A {}', "B", "no message B, but A"),
    ],
)
def test_what_is_no_schema_is_named(text, message, reason):
    with pytest.raises(SchemaInvalid, match=reason):
        codec("protobuf", text, message)
