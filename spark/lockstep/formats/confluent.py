"""The wire format of Confluent's serializers: a zero byte, the id of the writer's schema in four bytes, and the value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lockstep.formats.errors import Undecodable

HEADER = 5
MAGIC = b"\0"


@dataclass(frozen=True)
class Registered:
    """A schema of a registry.

    Args:
        kind: as the registry names it: ``AVRO``, ``PROTOBUF`` or ``JSON``.
        text: the schema.
        has_references: whether it needs other schemas of the registry.
    """

    kind: str
    text: str
    has_references: bool = False


class Registry(Protocol):
    """Whoever knows schemas by their ids."""

    def schema(self, schema_id: int) -> Registered | None:
        """The schema with this id; None: there is none."""


@dataclass(frozen=True)
class Writers:
    """The writers' schemas of one stream.

    Args:
        known: by id; None: the registry has no such schema.
        registry: who is asked for other ids.
        otherwise: the schema of other ids, where there is no registry.
    """

    known: Mapping[int, Registered | None] = field(default_factory=dict)
    registry: Registry | None = None
    otherwise: Registered | None = None

    def schema(self, schema_id: int) -> Registered | None:
        """The schema with this id; None: nobody knows it.

        Raises:
            RegistryDown: the registry has to be asked, and does not answer.
        """
        if schema_id in self.known:
            return self.known[schema_id]
        return self.registry.schema(schema_id) if self.registry else self.otherwise


def unframed(value: bytes) -> tuple[int, bytes]:
    """The id of the schema, and the value behind it.

    Raises:
        Undecodable: the bytes are not in the wire format.
    """
    if value[:1] != MAGIC:
        raise Undecodable("no magic byte")
    if len(value) < HEADER:
        raise Undecodable("malformed")
    return int.from_bytes(value[1:HEADER], "big"), value[HEADER:]


def framed(schema_id: int, body: bytes) -> bytes:
    """The value in the wire format."""
    return MAGIC + schema_id.to_bytes(4, "big") + body


def schema_ids(values: Iterable[bytes | None]) -> set[int]:
    """The ids that these values name, those that are not in the wire format left out."""
    headers = {value[:HEADER] for value in values if value and value[:1] == MAGIC and len(value) >= HEADER}
    return {int.from_bytes(header[1:], "big") for header in headers}
