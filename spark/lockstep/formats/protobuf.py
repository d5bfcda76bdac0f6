"""Protobuf: values of one message of a .proto file."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from lockstep.formats.errors import SchemaInvalid, Undecodable
from lockstep.formats.json_text import spelled
from lockstep.formats.kinds import Kind
from lockstep.formats.proto_files import compiled

_F = FieldDescriptor
_START = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_ENUM), Kind.TEXT),
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), Kind.INTEGER),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32, _F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), Kind.LONG),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), Kind.LONG),
    **dict.fromkeys((_F.TYPE_FLOAT, _F.TYPE_DOUBLE), Kind.NUMBER),
    _F.TYPE_BOOL: Kind.BOOLEAN,
    _F.TYPE_BYTES: Kind.BYTES,
    _F.TYPE_MESSAGE: Kind.RECORD,
    _F.TYPE_GROUP: Kind.RECORD,
}
# What two types have in common whose values can be read as each other's.
_ON_THE_WIRE: Mapping[int, str] = {
    **dict.fromkeys(
        (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM), "varint"
    ),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "fixed64"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "bytes"),
}
# Messages that stand for one value.
_VALUES = {
    "google.protobuf.Timestamp": Kind.TIME,
    "google.type.Date": Kind.DATE,
    "google.type.Decimal": Kind.DECIMAL,
    "google.protobuf.StringValue": Kind.TEXT,
    "google.protobuf.BytesValue": Kind.BYTES,
    "google.protobuf.BoolValue": Kind.BOOLEAN,
    "google.protobuf.Int32Value": Kind.INTEGER,
    "google.protobuf.Int64Value": Kind.LONG,
    "google.protobuf.UInt32Value": Kind.LONG,
    "google.protobuf.UInt64Value": Kind.LONG,
    "google.protobuf.FloatValue": Kind.NUMBER,
    "google.protobuf.DoubleValue": Kind.NUMBER,
}


class Protobuf:
    """Values of one message.

    Args:
        schema: the text of the .proto file.
        message: the message's full name; empty: the first one of the file.

    Raises:
        SchemaInvalid: the text cannot be compiled, or has no such message.
    """

    def __init__(self, schema: str, message: str = "") -> None:
        self._descriptor = descriptor_of(schema, message)
        self._class = GetMessageClass(self._descriptor)

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        return {field.name: _kind(field) for field in self._descriptor.fields}

    def kinds(self) -> Mapping[str, Kind]:
        """By the name of a field, what kind of values it has."""
        return self._kinds

    def decode(self, value: bytes) -> dict[str, Any]:
        """The fields of a value. One that the message does not have is named by its number, such as ``#7``.

        Raises:
            Undecodable: it is no value of the message.
        """
        return self._read(value, {})

    def decode_framed(self, body: bytes, writer: str) -> dict[str, Any]:
        """The fields of a value that was written by another version of the file.

        Raises:
            Undecodable: it is no value of the message, or of another one.
        """
        path, value = _indexes(body)
        try:
            written = _at(_file(writer), path)
        except SchemaInvalid:
            raise Undecodable("its schema in the registry cannot be compiled") from None
        if written.full_name != self._descriptor.full_name:
            raise Undecodable(f"a message {written.full_name}")
        if not all(
            map(_readable, written.fields, (self._descriptor.fields_by_number.get(f.number) for f in written.fields))
        ):
            raise Undecodable("written with a schema that the contract's cannot read")
        return self._read(value, {field.number: field.name for field in written.fields})

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        """The value with these fields, which may be as JSON has them: times and decimals as texts."""
        message = self._class()
        given = {name: _from_json(self._kinds[name], value) for name, value in fields.items() if name in self._kinds}
        json_format.ParseDict(given, message)
        written: bytes = message.SerializeToString(deterministic=True)
        return written

    def framed_prefix(self) -> bytes:
        """What stands before the value in the wire format: where the message is in its file."""
        path: list[int] = []
        descriptor: Descriptor | None = self._descriptor
        while descriptor is not None:
            parent = descriptor.containing_type
            path.insert(0, (parent.nested_types if parent else _top(descriptor.file)).index(descriptor))
            descriptor = parent
        return b"\0" if path == [0] else b"".join(map(_zigzag, (len(path), *path)))

    def _read(self, value: bytes, names: Mapping[int, str]) -> dict[str, Any]:
        message = self._class()
        try:
            message.ParseFromString(value)
            fields = _fields(message)
        except (DecodeError, OverflowError, ValueError) as error:
            raise Undecodable("malformed") from error
        return fields | {names.get(one.field_number, f"#{one.field_number}"): "" for one in UnknownFieldSet(message)}


def descriptor_of(schema: str, message: str = "") -> Descriptor:
    """The message with this full name; empty: the first one of the file.

    Raises:
        SchemaInvalid: the text cannot be compiled, or has no such message.
    """
    return _message(_file(schema), message)


def on_the_wire(field: FieldDescriptor) -> str | int:
    """The same for fields whose values can be read as each other's."""
    kind: int = field.type
    return _ON_THE_WIRE.get(kind, kind)


@cache
def _file(schema: str) -> FileDescriptor:
    return compiled(schema)


def _message(file: FileDescriptor, name: str) -> Descriptor:
    messages = {found.full_name: found for one in _top(file) for found in _nested(one)}
    if not messages:
        raise SchemaInvalid("its .proto file has no message")
    if not name:
        return next(iter(messages.values()))
    if name not in messages:
        raise SchemaInvalid(f"its .proto file has no message {name}, but {', '.join(messages)}")
    return messages[name]


def _top(file: FileDescriptor) -> list[Descriptor]:
    return [*file.message_types_by_name.values()]


def _nested(message: Descriptor) -> Iterator[Descriptor]:
    yield message
    for one in message.nested_types:
        yield from _nested(one)


def _at(file: FileDescriptor, path: Sequence[int]) -> Descriptor:
    try:
        found = _top(file)[path[0]]
        for index in path[1:]:
            found = found.nested_types[index]
    except IndexError:
        raise Undecodable("malformed") from None
    return found


def _indexes(body: bytes) -> tuple[list[int], bytes]:
    """Where the message is in its file, and the value behind that."""
    numbers: list[int] = []
    at, wanted = 0, 1
    while len(numbers) < wanted:
        number, at = _varint(body, at)
        numbers.append(number)
        if len(numbers) == 1:
            # One zero is short for the first message of the file. Each number takes a byte at least.
            if not 0 <= number <= len(body):
                raise Undecodable("malformed")
            wanted += number
    return numbers[1:] or [0], body[at:]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(body) and shift < 64:
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise Undecodable("malformed")


def _zigzag(number: int) -> bytes:
    rest, written = number << 1, bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def _readable(written: FieldDescriptor, read: FieldDescriptor | None) -> bool:
    return read is None or on_the_wire(written) == on_the_wire(read)


def _kind(field: FieldDescriptor) -> Kind:
    if _is_map(field):
        return Kind.MAP
    if field.is_repeated:
        return Kind.ARRAY
    return _VALUES[field.message_type.full_name] if _is_value(field) else _KINDS[field.type]


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _is_value(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.full_name in _VALUES)


def _fields(message: Any) -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: FieldDescriptor) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        of_value = field.message_type.fields_by_name["value"]
        return {str(key): _value(one, of_value) for key, one in value.items()}
    return [_value(one, field) for one in value] if field.is_repeated else _value(value, field)


def _value(value: Any, field: FieldDescriptor) -> Any:
    if field.type == _F.TYPE_ENUM:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named else str(value)
    if field.message_type is None:
        return value
    kind = _VALUES.get(field.message_type.full_name)
    if kind is None:
        return _fields(value)
    if kind is Kind.TIME:
        return _START + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return date(value.year, value.month, value.day) if kind is Kind.DATE else value.value


def _from_json(kind: Kind, value: Any) -> Any:
    if kind is Kind.DATE and isinstance(value, str):
        day = date.fromisoformat(value)
        return {"year": day.year, "month": day.month, "day": day.day}
    return {"value": value} if kind is Kind.DECIMAL and isinstance(value, str) else _without_nan(value)


def _without_nan(value: Any) -> Any:
    """The value with what is not finite as a text, as Protobuf's own JSON has it, however deep it is."""
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return spelled(value) if isinstance(value, float) and not math.isfinite(value) else value
