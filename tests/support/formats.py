"""Page views in Avro and Protobuf. The writers are the formats' own libraries: they share no code with what they check."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st
from tests.support.shop import START

from lockstep.contracts import CONTRACTS, Contract
from lockstep.formats.proto_files import compiled

# Beside those of page_views, one column of each type.
COLUMNS = {
    "count": "INT",
    "total": "BIGINT",
    "share": "DOUBLE",
    "amount": "DECIMAL(12,2)",
    "day": "DATE",
    "seen_at": "TIMESTAMP",
    "paid": "BOOLEAN",
    "tags": "ARRAY<STRING>",
}
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_TYPES = {
    "STRING": "string",
    "INT": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "DECIMAL(12,2)": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": _TIME,
    "BOOLEAN": "boolean",
    "ARRAY<STRING>": {"type": "array", "items": "string"},
}


def page_views(name: str) -> Contract:
    """A stream like page_views with :data:`COLUMNS`, in JSON."""
    like = CONTRACTS["page_views"]
    return replace(like, name=name, topic=name, columns={**like.columns, **COLUMNS}, rules=())


def avro_schema(columns: Mapping[str, str], **more: Any) -> str:
    """The Avro schema of a page view: each column may be null. ``more`` has the types of further fields."""
    fields = [{"name": n, "type": ["null", _TYPES[kind]], "default": None} for n, kind in columns.items()]
    fields += [{"name": n, "type": ["null", kind], "default": None} for n, kind in more.items()]
    return json.dumps({"type": "record", "name": "shop.PageView", "fields": fields})


def in_avro(schema: str, event: Mapping[str, Any]) -> bytes:
    """The event by fastavro alone."""
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(schema)), dict(event))
    return written.getvalue()


PROTO_TYPES = {
    "STRING": "optional string",
    "INT": "optional sint32",
    "BIGINT": "optional int64",
    "DOUBLE": "optional double",
    "DECIMAL(12,2)": "google.type.Decimal",
    "DATE": "google.type.Date",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "BOOLEAN": "optional bool",
    "ARRAY<STRING>": "repeated string",
}
_IMPORTS = "".join(f'import "google/{name}.proto";\n' for name in ("type/decimal", "type/date", "protobuf/timestamp"))


def proto_schema(columns: Mapping[str, str], **more: str) -> str:
    """The .proto file of a page view, after another message. ``more`` has the types of further fields."""
    types = {**{name: PROTO_TYPES[kind] for name, kind in columns.items()}, **more}
    fields = "".join(f"  {kind} {name} = {number};\n" for number, (name, kind) in enumerate(types.items(), 1))
    other = "message Other {\n  string a = 1;\n}\n"
    return f'syntax = "proto3";\npackage shop;\n{_IMPORTS}{other}message PageView {{\n{fields}}}\n'


@cache
def _message(schema: str) -> Any:
    return GetMessageClass(compiled(schema).message_types_by_name["PageView"])


def in_protobuf(schema: str, event: Mapping[str, Any]) -> bytes:
    """The event as the class of its message writes it."""
    message = _message(schema)()
    for name, value in event.items():
        if value is None:
            continue
        if isinstance(value, datetime):
            getattr(message, name).FromDatetime(value)
        elif isinstance(value, date):
            day = getattr(message, name)
            day.year, day.month, day.day = value.year, value.month, value.day
        elif isinstance(value, Decimal):
            getattr(message, name).value = str(value)
        elif isinstance(value, list):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)
    written: bytes = message.SerializeToString()
    return written


def in_json(event: Mapping[str, Any]) -> bytes:
    """The event as the producers of JSON write it."""
    return json.dumps(event, default=lambda v: str(v) if isinstance(v, Decimal) else v.isoformat()).encode()


def page_view(number: int, **fields: Any) -> dict[str, Any]:
    """A sound event of the first minutes."""
    at = START + timedelta(seconds=number)
    return {"event_id": f"e{number}", "event_time": at, "user_id": "u1", "page": "/"} | fields


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
EVENTS = st.fixed_dictionaries(
    {
        "event_id": st.uuids().map(str),
        "event_time": st.integers(0, 600).map(lambda second: START + timedelta(seconds=second)),
        "user_id": st.sampled_from(["u1", "u2", ""]),
        "page": st.sampled_from(["/", "/a", "/b"]),
    },
    optional={
        "session_id": _TEXTS,
        "referrer": _TEXTS,
        "country": st.none() | _TEXTS,
        "count": st.none() | st.integers(-(2**31), 2**31 - 1),
        "total": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": st.none() | st.floats(),
        "amount": st.none() | st.decimals(-Decimal(10**10) + 1, Decimal(10**10) - 1, places=2),
        "day": st.none() | st.dates(date(1900, 1, 1), date(2100, 1, 1)),
        "seen_at": st.none() | _MOMENTS,
        "paid": st.none() | st.booleans(),
        "tags": st.none() | st.lists(_TEXTS, max_size=3),
    },
)
"""Events of :func:`page_views`, in Python's own values."""
