"""How the value of a record is written: JSON, or by a schema in Avro or Protobuf. Pure, and knows nothing of Spark.

A value of Avro or Protobuf becomes the text of a JSON object with the same fields, and everything after that (types, the fields
that a contract does not name, what is ``malformed``) is the same code for all formats.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Protocol

from lockstep.formats.errors import SchemaInvalid, Undecodable
from lockstep.formats.kinds import Kind, fits

Format = Literal["json", "avro", "protobuf"]


class Codec(Protocol):
    """Reads and writes the values of one schema."""

    def kinds(self) -> Mapping[str, Kind]:
        """By the name of a field, what kind of values it has."""

    def decode(self, value: bytes) -> dict[str, Any]:
        """The fields of a value.

        Raises:
            Undecodable: it is no value of the schema, or more than one.
        """

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        """The value with these fields, which may be as JSON has them: times and decimals as texts."""


@cache
def codec(kind: Format, schema: str) -> Codec:
    """What reads and writes values of a schema. It is made once in a process.

    Raises:
        SchemaInvalid: the text is no schema of the format.
    """
    from lockstep.formats.avro import Avro

    return {"avro": Avro}[kind](schema)


__all__ = ["Codec", "Format", "Kind", "SchemaInvalid", "Undecodable", "codec", "fits"]
