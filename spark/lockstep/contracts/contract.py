"""What a stream promises: its topic, key, schema, time, identity and personal columns. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True)
class Contract:
    """One stream, from its topic to its silver table.

    Args:
        name: the table's name in every layer (``bronze.<name>``, ``silver.<name>``).
        topic: the Kafka topic.
        kind: ``events`` (immutable facts) or ``changes`` (Debezium envelopes of one PostgreSQL table).
        columns: the payload's columns, in order, and their Spark types. For ``changes``, those of the source table's row.
        key: the columns that make the record's key.
        unique_id: the columns that identify one event, or one row of the source table.
        event_time: the column that says when it happened (UTC). For ``changes`` the commit time orders the rows, and
            this is the row's own time, or empty when it has none.
        required: columns without which a row goes to quarantine.
        pii: columns that are tokens from silver on.
        dedup_window: how long an event's unique id is remembered, in arrival time.
        max_clock_skew: how far event time may lie after arrival before the row is quarantined.
        partitions: how many the topic is created with.
    """

    name: str
    topic: str
    kind: Literal["events", "changes"]
    columns: Mapping[str, str]
    key: tuple[str, ...]
    unique_id: tuple[str, ...]
    event_time: str
    required: tuple[str, ...] = ()
    pii: tuple[str, ...] = ()
    dedup_window: timedelta = timedelta(days=1)
    max_clock_skew: timedelta = timedelta(minutes=5)
    partitions: int = 3
