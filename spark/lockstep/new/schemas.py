"""The schema of a new stream in Avro or Protobuf, by its columns. Pure."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from lockstep.new.render import NotMade

_AVRO: Mapping[str, Any] = {
    "STRING": "string",
    "BOOLEAN": "boolean",
    "INT": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
}
# Protobuf has no decimals and no dates: as texts, each producer can write them.
_PROTOBUF = {
    "STRING": "string",
    "BOOLEAN": "bool",
    "INT": "int32",
    "BIGINT": "int64",
    "DOUBLE": "double",
    "DATE": "string",
    "TIMESTAMP": "google.protobuf.Timestamp",
}
ENDINGS = {"avro": "avsc", "protobuf": "proto"}


def schema(kind: str, name: str, columns: Mapping[str, str], required: Collection[str]) -> str:
    """The text of the schema's file.

    Args:
        kind: ``avro`` or ``protobuf``.
        required: columns that may not be null.

    Raises:
        NotMade: there is no such format.
    """
    if kind not in ENDINGS:
        raise NotMade(f"There is no format {kind!r}: a stream's values are in json, {' or '.join(ENDINGS)}.")
    return _avro(name, columns, required) if kind == "avro" else _proto(name, columns, required)


def _avro(name: str, columns: Mapping[str, str], required: Collection[str]) -> str:
    fields = [
        {"name": column, "type": _avro_type(kind)}
        if column in required
        else {"name": column, "type": ["null", _avro_type(kind)], "default": None}
        for column, kind in columns.items()
    ]
    return json.dumps({"type": "record", "name": _camel(name), "fields": fields}, indent=2) + "\n"


def _avro_type(kind: str) -> Any:
    if not kind.startswith("DECIMAL"):
        return _AVRO[kind]
    precision, scale = map(int, kind.removeprefix("DECIMAL(").removesuffix(")").split(","))
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _proto(name: str, columns: Mapping[str, str], required: Collection[str]) -> str:
    lines = ['syntax = "proto3";', ""]
    if "TIMESTAMP" in columns.values():
        lines += ['import "google/protobuf/timestamp.proto";', ""]
    lines.append(f"message {_camel(name)} {{")
    for number, (column, kind) in enumerate(columns.items(), 1):
        # What is not optional has a value always: a text that was not set is empty, and not null.
        optional = "" if column in required or kind == "TIMESTAMP" else "optional "
        comment = f"  // a {kind.split('(')[0].lower()}, as a text" if kind.startswith(("DATE", "DECIMAL")) else ""
        lines.append(f"  {optional}{_PROTOBUF.get(kind, 'string')} {column} = {number};{comment}")
    return "\n".join([*lines, "}", ""])


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
