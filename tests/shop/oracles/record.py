"""Records as the broker acknowledged them, and which of them count: plain Python, and nothing of Lockstep's own."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Record:
    """One acknowledged record.

    Args:
        arrival: its Kafka timestamp (UTC, aware).
        value: the parsed JSON object (for changes Debezium's envelope), or None for what cannot be parsed, tombstones and
            heartbeats.
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
    """The events that silver keeps: parsed, with an id and a time, not from the future; of duplicates the first in the log."""
    seen: set[str] = set()
    kept = []
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        value = record.value
        if not isinstance(value, dict) or not value.get(id_column) or not value.get(time_column):
            continue
        if (parsed(value[time_column]) - record.arrival).total_seconds() > 300 or value[id_column] in seen:
            continue
        seen.add(value[id_column])
        kept.append(record)
    return kept


def on_time(records: list[Record], seconds: float, time_column: str = "event_time") -> list[Record]:
    """The records that arrived at most so many seconds after their event happened."""
    return [r for r in records if (r.arrival - parsed(r.value[time_column])).total_seconds() <= seconds]
