"""Which windows an instant lies in, found by stepping back from it: another way than the platform's formula."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def windows(instant: datetime, size: timedelta, slide: timedelta) -> list[datetime]:
    """The starts of all windows ``[start, start + size)`` that contain the instant, latest first."""
    start = EPOCH + slide * int((instant - EPOCH) / slide)
    while start > instant:
        start -= slide
    starts = []
    while start + size > instant:
        starts.append(start)
        start -= slide
    return starts


def payloads_by_window(
    records: Mapping[str, list[Record]],
    stream: str,
    lateness: float,
    size: timedelta,
    slide: timedelta,
    by: Callable[[dict[str, Any]], Any],
) -> dict[tuple[datetime, Any], list[dict[str, Any]]]:
    """The payloads that count, by window and key. A payload with the key None counts nowhere."""
    groups: dict[tuple[datetime, Any], list[dict[str, Any]]] = {}
    for record in on_time(accepted(records[stream]), lateness):
        key = by(record.value)
        if key is not None:
            for start in windows(parsed(record.value["event_time"]), size, slide):
                groups.setdefault((start, key), []).append(record.value)
    return groups
