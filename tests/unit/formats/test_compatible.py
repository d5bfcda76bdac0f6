"""A schema that cannot read what the one before has written is named with the place; and one that can is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.formats import Undecodable, codec
from lockstep.formats.compatible import unreadable

TYPES = ["string", "int", "long", "double", "boolean", ["null", "string"], ["null", "long"]]
VALUES = {"string": "x", "int": 1, "long": 2, "double": 0.5, "boolean": True}
PROTO = 'syntax = "proto3"; message A {{ {} }}'


def record(**fields):
    return json.dumps({"type": "record", "name": "A", "fields": [{"name": n, **f} for n, f in fields.items()]})


@given(st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_what_is_called_readable_is_read_and_nothing_else(before, now):
    old, new = record(a={"type": before}), record(a={"type": now})
    reasons = unreadable("avro", old, new)
    kinds = before if isinstance(before, list) else [before]
    values = [codec("avro", old).encode({"a": VALUES.get(kind)}) for kind in kinds]
    assert bool(reasons) == any(is_refused(value, old, new) for value in values)


def is_refused(value, old, new):
    try:
        codec("avro", new).decode_framed(value, old)
    except Undecodable:
        return True
    return False


def test_a_new_field_of_avro_needs_a_default():
    old = record(a={"type": "string"})
    assert unreadable("avro", old, record(a={"type": "string"}, b={"type": "int", "default": 0})) == []
    [reason] = unreadable("avro", old, record(a={"type": "string"}, b={"type": "int"}))
    assert reason == "reader field missing default value: b (at /fields/1)"


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ("int32 a = 1;", "int64 a = 1;", None),
        ("int32 a = 1;", "int32 a = 1; string b = 2;", None),
        ("int32 a = 1; string b = 2;", "int32 a = 1;", None),
        (
            "int32 a = 1;",
            "string a = 1;",
            "the field 1 of A was int32 a, and is string a: give the new one another number",
        ),
        ("int32 a = 1;", "repeated int32 a = 1;", "and is repeated int32 a"),
        ("int32 a = 1;", "int32 a = 2;", "A.a had the number 1, and has 2"),
        (
            "B b = 1; message B { int32 x = 1; }",
            "B b = 1; message B { string x = 1; }",
            "the field 1 of A.B was int32 x",
        ),
    ],
)
def test_a_message_keeps_the_numbers_and_types_of_its_fields(before, now, reason):
    found = unreadable("protobuf", PROTO.format(before), PROTO.format(now))
    assert (found == []) if reason is None else (len(found) == 1 and reason in found[0])
