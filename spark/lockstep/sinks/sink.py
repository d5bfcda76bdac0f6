"""What a sink outside the lake declares, and the form in which rows leave."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lockstep.definition.alerting import Delivery
from lockstep.sinks.errors import NameRefused, RowRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID = "alert_id"
IDEMPOTENCY_KEY = "Idempotency-Key"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_TIMESTAMPS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "ignoreNullFields": "false"}


@dataclass(frozen=True)
class TopicSink:
    """A topic that one query sends its rows to.

    Args:
        name: of the sender, such as the view's name; no two queries share one.
        topic: it is created where it is missing.
        key: the column whose value decides the partition, so that the rows of one key stay in order.
        delivery: what a reader may rely on. ``exactly_once`` holds for readers that are ``read_committed``.
    """

    name: str
    topic: str = "alerts"
    key: str = ID
    delivery: Delivery = Delivery.EXACTLY_ONCE
    partitions: int = 3

    def __post_init__(self) -> None:
        for name in (self.name, self.topic):
            checked_name(name)


def checked_name(name: str) -> None:
    """Refuse what a topic and a transactional id could not be called.

    Raises:
        NameRefused: it is empty, too long, or has other characters.
    """
    if not _NAME.fullmatch(name):
        raise NameRefused(f"{name!r} cannot name a sink or its topic: use a-z, 0-9, dot, underscore and hyphen")


@dataclass(frozen=True)
class Message:
    """A row on its way out: its idempotency key, its partitioning key, and its JSON text."""

    id: str
    key: str
    value: str


def alert_id(*parts: object) -> str:
    """The idempotency key of an alert, from what makes it that alert (its view, key and time): the same on every run."""
    return hashlib.sha256(json.dumps(parts, default=_plain).encode()).hexdigest()[:32]


def messages(rows: "DataFrame | Iterable[Mapping[str, Any]]", sink: str, key: str = ID) -> Iterator[Message]:
    """The rows as they leave: one JSON object each, times in ISO 8601 and UTC.

    Raises:
        RowRefused: a row has no ``alert_id``, without which nobody could tell a repetition, or one that no header may hold.
    """
    for text in _texts(rows):
        row = json.loads(text)
        if not _ID.fullmatch(str(row.get(ID) or "")):
            raise RowRefused(
                f"{sink}: a row has no sound {ID}; give it one (`alert_id(view, key, time)`): {text[:200]}"
            )
        yield Message(str(row[ID]), str(row.get(key)), text)


def _texts(rows: "DataFrame | Iterable[Mapping[str, Any]]") -> Iterator[str]:
    if isinstance(rows, Iterable):
        return (json.dumps(dict(row), default=_plain) for row in rows)
    from pyspark.sql import functions as F

    # Spark writes the JSON, in the session's time zone (UTC): collected timestamps would be in that of the process.
    collected = rows.select(F.to_json(F.struct("*"), _TIMESTAMPS)).collect()
    return (row[0] for row in collected)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} has no place in an alert")
