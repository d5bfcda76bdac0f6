"""Rows of quarantine: how they are shown, corrected, and known again after they were sent. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep.errors import LockstepError
from lockstep.formats.json_text import json_text

if TYPE_CHECKING:
    from lockstep.contracts import Contract

# The header of a record that was re-driven: the place of the row that it stands for.
HEADER = "lockstep-redriven"
_HIDDEN = "•••"
# A record may have megabytes.
_LONGEST = 2_000
Place = tuple[int, int]
Header = tuple[str, bytes | None]


class RedriveRefused(LockstepError):
    """Rows cannot be re-driven as was asked. Nothing was sent."""


@dataclass(frozen=True)
class Row:
    """One row of quarantine.

    Args:
        arrival: the Kafka timestamp of its record (UTC).
        reason: why it is here.
        headers: of its record.
    """

    partition: int
    offset: int
    arrival: datetime
    reason: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @property
    def place(self) -> Place:
        """Its partition and offset."""
        return self.partition, self.offset


def origin(contract: "Contract", place: Place) -> bytes:
    """The value of :data:`HEADER` for a row."""
    return f"{contract.topic}/{place[0]}/{place[1]}".encode()


def place_of(contract: "Contract", value: bytes | None) -> Place | None:
    """The place that a value of :data:`HEADER` names; None: it is of another topic, or none of ours."""
    topic, _, rest = (value or b"").decode(errors="replace").partition("/")
    partition, _, offset = rest.partition("/")
    is_ours = topic == contract.topic and partition.isdecimal() and offset.isdecimal()
    return (int(partition), int(offset)) if is_ours else None


def parse_place(text: str) -> Place:
    """``PARTITION:OFFSET``, as `lockstep quarantine show` prints it.

    Raises:
        RedriveRefused: it is something else.
    """
    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise RedriveRefused(f"{text!r} is no place of a row: write PARTITION:OFFSET, such as 0:17.")
    return int(partition), int(offset)


def with_fields(row: Row, fields: Mapping[str, Any], contract: "Contract") -> bytes:
    """The row's value with other values of some fields, in the format of the contract.

    Raises:
        RedriveRefused: it is no JSON object, or cannot be read by the contract's schema.
    """
    body = _body(row.value or b"", contract)
    if not isinstance(body, dict):
        what = "no JSON object" if contract.format == "json" else f"not readable as {contract.format}"
        raise RedriveRefused(
            f"{row.partition}:{row.offset} is {what}, so no field of it can be set: give the whole value with --value."
        )
    if contract.format == "json":
        return json.dumps(body | dict(fields), ensure_ascii=False).encode()
    try:
        return contract.encoded(body | dict(fields))
    except (ValueError, TypeError) as error:
        raise RedriveRefused(
            f"{row.partition}:{row.offset}: the schema does not allow these values ({error})."
        ) from error


def _body(value: bytes, contract: "Contract") -> Any:
    """The value as JSON has it; None: it cannot be read, or only by a schema of a registry."""
    if contract.wire_format != "plain":
        return None
    try:
        return json.loads(value if contract.format == "json" else json_text(contract.codec.decode(value)))
    except ValueError:
        return None


def shown(value: bytes | None, contract: "Contract") -> str:
    """A value for people, without PII: bytes that cannot be read as JSON are not shown of a stream that has any."""
    if value is None:
        return "(no value)"
    body = _body(value, contract)
    if contract.format != "json" and body is None:
        return f"({len(value):,} bytes that are not readable as {contract.format})"
    text = json.dumps(_without_pii(body, contract), ensure_ascii=False)
    if body is None and value.strip() != b"null":
        if contract.pii:
            return f"({len(value):,} bytes that are no JSON, and may have PII)"
        text = value[:_LONGEST].decode(errors="replace")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(value):,} bytes)"


def _without_pii(body: Any, contract: "Contract") -> Any:
    if isinstance(body, dict):
        return {
            name: _HIDDEN if name in contract.pii and value is not None else _without_pii(value, contract)
            for name, value in body.items()
        }
    return [_without_pii(one, contract) for one in body] if isinstance(body, list) else body
