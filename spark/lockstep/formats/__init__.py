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

    def decode_framed(self, body: bytes, writer: str) -> dict[str, Any]:
        """The fields of a value in Confluent's wire format, by this schema.

        Args:
            body: what stands behind the id of the writer's schema.
            writer: that schema. Fields that this one does not have are there too, by the names that the writer gave them.

        Raises:
            Undecodable: it is no value of the writer's schema, or cannot be read by this one.
        """

    def framed_prefix(self) -> bytes:
        """What stands between the id of the schema and a value that :meth:`encode` has written, in Confluent's wire format."""

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        """The value with these fields, which may be as JSON has them: times and decimals as texts."""


@cache
def codec(kind: Format, schema: str, message: str = "") -> Codec:
    """What reads and writes values of a schema. It is made once in a process.

    Args:
        message: of Protobuf, the full name of the message; empty: the first one of the file.

    Raises:
        SchemaInvalid: the text is no schema of the format.
    """
    # Both take time to import, and most streams are in JSON.
    if kind == "avro":
        from lockstep.formats.avro import Avro

        return Avro(schema)
    from lockstep.formats.protobuf import Protobuf

    return Protobuf(schema, message)


__all__ = ["Codec", "Format", "Kind", "SchemaInvalid", "Undecodable", "codec", "fits"]
