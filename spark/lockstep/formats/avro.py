"""Avro: values in its binary encoding, without a header of their own."""

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException

from lockstep.formats.errors import SchemaInvalid, Undecodable
from lockstep.formats.kinds import Kind

_MALFORMED = "malformed"
_LOGICAL = {
    "decimal": Kind.DECIMAL,
    "date": Kind.DATE,
    "uuid": Kind.TEXT,
    "time-millis": Kind.TEXT,
    "time-micros": Kind.TEXT,
    "timestamp-millis": Kind.TIME,
    "timestamp-micros": Kind.TIME,
    "local-timestamp-millis": Kind.TIME,
    "local-timestamp-micros": Kind.TIME,
}
_PLAIN = {
    "string": Kind.TEXT,
    "enum": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "int": Kind.INTEGER,
    "long": Kind.LONG,
    "float": Kind.NUMBER,
    "double": Kind.NUMBER,
    "bytes": Kind.BYTES,
    "fixed": Kind.BYTES,
    "record": Kind.RECORD,
    "map": Kind.MAP,
    "array": Kind.ARRAY,
}
_FROM_TEXT: Mapping[Kind, Callable[[str], Any]] = {
    Kind.DECIMAL: Decimal,
    Kind.DATE: date.fromisoformat,
    Kind.TIME: datetime.fromisoformat,
}


class Avro:
    """Values of one Avro schema, whose top is a record.

    Args:
        schema: the schema, as JSON.

    Raises:
        SchemaInvalid: it is none.
    """

    def __init__(self, schema: str) -> None:
        self._schema = _parsed(schema)

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        return {field["name"]: _kind(field["type"], self._named) for field in self._schema["fields"]}

    @cached_property
    def _named(self) -> dict[str, Any]:
        named: dict[str, Any] = self._schema.get("__named_schemas", {})
        return named

    def kinds(self) -> Mapping[str, Kind]:
        """By the name of a field, what kind of values it has."""
        return self._kinds

    def decode(self, value: bytes) -> dict[str, Any]:
        """The fields of a value.

        Raises:
            Undecodable: it is no value of the schema, or more than one.
        """
        return _read(value, self._schema)

    def decode_framed(self, body: bytes, writer: str) -> dict[str, Any]:
        """The fields of a value that was written by another schema, as Avro's schema resolution reads it.

        Raises:
            Undecodable: it is no value of the writer's schema, or cannot be read by this one.
        """
        try:
            written = _parsed(writer)
        except SchemaInvalid:
            raise Undecodable("its schema in the registry is no record of Avro") from None
        fields = _read(body, written, self._schema)
        others = [field["name"] for field in written["fields"] if field["name"] not in self._read_names]
        # Resolution drops the fields of the writer alone.
        return fields | (
            {name: value for name, value in _read(body, written).items() if name in others} if others else {}
        )

    @cached_property
    def _read_names(self) -> set[str]:
        return {name for field in self._schema["fields"] for name in (field["name"], *field.get("aliases", ()))}

    def framed_prefix(self) -> bytes:
        """Nothing stands between the id of the schema and a value."""
        return b""

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        """The value with these fields. A field that is not given gets its default, or null."""
        written = BytesIO()
        row = {name: _from_json(self._kinds[name], fields[name]) for name in self._kinds if name in fields}
        schemaless_writer(written, self._schema, row)
        return written.getvalue()


@cache
def _parsed(schema: str) -> Any:
    try:
        parsed = parse_schema(json.loads(schema))
    except (ValueError, SchemaParseException, KeyError, TypeError, AttributeError) as error:
        raise SchemaInvalid(f"it is no Avro schema: {type(error).__name__}: {error}") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise SchemaInvalid("its Avro schema is no record: the fields of a record become the columns")
    return parsed


def _read(value: bytes, schema: Any, reader: Any = None) -> dict[str, Any]:
    source = BytesIO(value)
    try:
        fields = schemaless_reader(source, schema, reader)
    except SchemaResolutionError:
        raise Undecodable("written with a schema that the contract's cannot read") from None
    except UnicodeDecodeError:
        raise Undecodable("not UTF-8") from None
    except Exception as error:
        raise Undecodable(_MALFORMED) from error
    if source.tell() != len(value) or not isinstance(fields, dict):
        raise Undecodable(_MALFORMED)
    return fields


def _kind(schema: Any, named: Mapping[str, Any]) -> Kind:
    if isinstance(schema, list):
        kinds = {_kind(one, named) for one in schema if one != "null"}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED
    if isinstance(schema, str):
        return _PLAIN[schema] if schema in _PLAIN else _kind(named[schema], named)
    if (logical := schema.get("logicalType")) in _LOGICAL:
        return _LOGICAL[logical]
    return _kind(schema["type"], named)


def _from_json(kind: Kind, value: Any) -> Any:
    return _FROM_TEXT[kind](value) if isinstance(value, str) and kind in _FROM_TEXT else value
