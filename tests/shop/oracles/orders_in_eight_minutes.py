"""Orders paid in the eight minutes up to a moment, by country, counted at each moment at which the number may change."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

EIGHT_MINUTES = timedelta(minutes=8)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """The number after each order that enters or leaves. Orders of one instant enter one by one, and leave together."""
    orders: dict[str, list[datetime]] = {}
    for record in on_time(accepted(records["payments"]), 30):
        paid = parsed(record.value["event_time"])
        orders.setdefault(record.value.get("country") or "unknown", []).append(paid)
    return [
        {"at": at, "country": country, "orders": count}
        for country, times in orders.items()
        for at in sorted({*times, *(time + EIGHT_MINUTES for time in times)})
        for count in _counts(times, at)
    ]


def _counts(times: list[datetime], at: datetime) -> list[int]:
    coming = times.count(at)
    before = sum(at - EIGHT_MINUTES < time < at for time in times)
    going = [before] if at - EIGHT_MINUTES in times else []
    return [*going, *range(before + 1, before + coming + 1)]
