"""The records that the broker acknowledged, as the oracles get them. Plain Python, without any code of the platform."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Columns that events must have besides their id and time, by stream: repeated here, because an oracle does not ask the contracts.
REQUIRED: dict[str, tuple[str, ...]] = {
    "account_events": ("command_id", "type", "ledger"),
    "cart_events": ("command_id", "type", "cart_id"),
    "clicks": ("user_id", "session_id"),
    "follows": ("user_id", "product_id", "follows"),
    "impressions": ("user_id", "ad_id"),
    "logins": ("user_id", "success"),
    "page_views": ("user_id", "page"),
    "payments": ("user_id", "order_id", "amount"),
    "requests": ("endpoint", "status", "response_ms"),
    "saved_searches": ("user_id", "query", "saved"),
    "searches": ("user_id", "session_id", "query"),
    "sensors": ("sensor_id", "reading"),
}
# How far an event's time may be ahead of its arrival.
MAX_AHEAD_SECONDS = 300


@dataclass(frozen=True)
class Record:
    """One acknowledged record.

    Args:
        arrival: its Kafka timestamp (UTC, aware).
        value: the parsed JSON object (for changes Debezium's envelope); None for tombstones, heartbeats, and records that
            cannot be parsed.
    """

    stream: str
    partition: int
    offset: int
    arrival: datetime
    value: dict[str, Any] | None


def parsed(text: str) -> datetime:
    """The time that a payload has as ISO text."""
    return datetime.fromisoformat(text)


def accepted(records: list[Record], id_column: str = "event_id", time_column: str = "event_time") -> list[Record]:
    """The valid events, each once: parsed, with all required columns, not from the future, and the first of its id in the log."""
    seen: set[str] = set()
    valid = []
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        value = record.value
        needed = (id_column, time_column, *REQUIRED.get(record.stream, ()))
        if not isinstance(value, dict) or any(value.get(name) is None for name in needed):
            continue
        ahead = (parsed(value[time_column]) - record.arrival).total_seconds()
        if ahead > MAX_AHEAD_SECONDS or value[id_column] in seen:
            continue
        seen.add(value[id_column])
        valid.append(record)
    return valid


def on_time(records: list[Record], seconds: float, time_column: str = "event_time") -> list[Record]:
    """The events that arrived at most this many seconds after they happened."""
    return [r for r in records if delay(r, time_column) <= seconds]


def delay(record: Record, time_column: str = "event_time") -> float:
    """How many seconds after it happened an event arrived."""
    return (record.arrival - parsed((record.value or {})[time_column])).total_seconds()
