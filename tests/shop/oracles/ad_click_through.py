"""Impressions and the clicks of the same user on the same ad within ten minutes."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each pair, and one for each impression without any."""
    clicks = [r.value for r in on_time(accepted(records["clicks"]), 10)]
    result = []
    for record in on_time(accepted(records["impressions"]), 10):
        shown, shown_at = record.value, parsed(record.value["event_time"])
        matching = sorted(
            (parsed(c["event_time"]), c["event_id"])
            for c in clicks
            if c.get("ad_id") == shown["ad_id"]
            and c["user_id"] == shown["user_id"]
            and 0 <= (parsed(c["event_time"]) - shown_at).total_seconds() <= 600
        )
        for number, (clicked_at, click_id) in enumerate(matching or [(None, None)], 1 if matching else 0):
            result.append(
                {
                    "ad_id": shown["ad_id"],
                    "user_id": shown["user_id"],
                    "impression_id": shown["event_id"],
                    "shown_at": shown_at,
                    "click_no": number,
                    "click_id": click_id,
                    "clicked_at": clicked_at,
                    "delay_ms": round((clicked_at - shown_at).total_seconds() * 1000) if clicked_at else None,
                }
            )
    return result
