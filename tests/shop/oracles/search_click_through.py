"""Searches and the clicks on their results within an hour."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each pair of the same session and query, and one for each search without any."""
    clicks = [r.value for r in on_time(accepted(records["clicks"]), 10)]
    result = []
    for record in on_time(accepted(records["searches"]), 10):
        search, searched_at = record.value, parsed(record.value["event_time"])
        matching = sorted(
            (
                click
                for click in clicks
                if click["session_id"] == search["session_id"]
                and click.get("query") == search["query"]
                and 0 <= (parsed(click["event_time"]) - searched_at).total_seconds() <= 3600
            ),
            key=lambda click: (parsed(click["event_time"]), click["event_id"]),
        )
        for number, click in enumerate(matching or [{}], 1 if matching else 0):
            delay = (parsed(click["event_time"]) - searched_at).total_seconds() if click else None
            result.append(
                {
                    "query": search["query"],
                    "session_id": search["session_id"],
                    "search_id": search["event_id"],
                    "searched_at": searched_at,
                    "click_no": number,
                    "click_id": click.get("event_id"),
                    "position": click.get("position"),
                    "product_id": click.get("product_id"),
                    "delay_ms": None if delay is None else round(delay * 1000),
                }
            )
    return result
