"""Messages: the form in which rows leave the lake, with an idempotency key by which a reader recognises a repetition."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from lockstep.session import collect
from lockstep.sinks.errors import InvalidName, InvalidRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID = "alert_id"
IDEMPOTENCY_KEY = "Idempotency-Key"
# A part of what Kafka allows in topics and transactional ids: short enough to be read in a table, and valid in a file name.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
# The id becomes a header of HTTP and SMTP, so it must not contain a line break.
_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_TIMESTAMPS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "ignoreNullFields": "false"}


@dataclass(frozen=True)
class Message:
    """A row that leaves the lake.

    Attributes:
        id: the idempotency key.
        key: the key of the Kafka record, which decides the partition.
        value: the row as JSON text.
    """

    id: str
    key: str
    value: str


class Keyed(Protocol):
    """What a Kafka record is made of; without a value, it deletes its key."""

    @property
    def id(self) -> str:
        """The idempotency key."""

    @property
    def key(self) -> str:
        """The key of the Kafka record."""

    @property
    def value(self) -> str | None:
        """JSON text."""


def check_name(name: str) -> None:
    """Refuse a name that no topic and no transactional id may have.

    Raises:
        InvalidName: the name is empty or too long, or has other characters.
    """
    if not _NAME.fullmatch(name):
        raise InvalidName(f"{name!r} cannot name a sink or its topic: use a-z, 0-9, dot, underscore and hyphen")


def alert_id(*parts: object) -> str:
    """The idempotency key of an alert, made of what identifies it (its view, key and time). It is the same on every run."""
    return hashlib.sha256(json.dumps(parts, default=_json_value).encode()).hexdigest()[:32]


def messages(rows: "DataFrame | Iterable[Mapping[str, Any]]", sink: str, key: str = ID) -> Iterator[Message]:
    """The rows as messages: one JSON object each, with times in ISO 8601 and UTC. They are made one at a time.

    Args:
        sink: the name of the sink, for the error message.
        key: the column that becomes the message's key.

    Raises:
        InvalidRow: a row has no ``alert_id``, or one that no header may contain. Without it, no reader could recognise a
            repetition.
    """
    for text in _json_texts(rows):
        row = json.loads(text)
        if not _ID.fullmatch(str(row.get(ID) or "")):
            raise InvalidRow(
                f"{sink}: a row has no valid {ID}; give it one (`alert_id(view, key, time)`): {text[:200]}"
            )
        yield Message(str(row[ID]), str(row.get(key)), text)


def _json_texts(rows: "DataFrame | Iterable[Mapping[str, Any]]") -> Iterator[str]:
    if isinstance(rows, Iterable):
        return (json.dumps(dict(row), default=_json_value) for row in rows)
    from pyspark.sql import functions as F

    # Spark writes the JSON in the session's time zone (UTC). Timestamps that were collected would be in that of the process.
    # All texts are collected, as Arrow. A stream of them (``toLocalIterator``) would have to stay open as long as a receiver
    # needs, and after some minutes in which nobody reads it the server gives it up.
    texts = collect(rows.select(F.to_json(F.struct("*"), _TIMESTAMPS))).column(0)
    return (text.as_py() for text in texts)


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        instant = value if value.tzinfo else value.replace(tzinfo=UTC)
        return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"an alert cannot contain {value!r}: use text, numbers, booleans, dates, times and Decimal")
