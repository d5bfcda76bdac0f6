"""The worked examples of sessions, sliding windows, joins and patterns: visitors who have nothing in common with others."""

import json
from datetime import timedelta
from typing import Any

from tests.support.scenario import START, Sent

# By user (and session): the stream, the seconds after the start, and the payload's other columns.
EXAMPLES: dict[str, list[tuple[str, float, dict[str, Any]]]] = {
    "session_10min": [("page_views", minute * 60, {"page": "/"}) for minute in (0, 5, 14, 25)],
    "sliding_5min/together": [("page_views", second, {"page": "/"}) for second in (58, 58 + 299)],
    "sliding_5min/apart": [("page_views", second, {"page": "/"}) for second in (58, 58 + 301)],
    "impressions_clicks/A": [("impressions", 0, {"ad_id": "123"}), ("clicks", 120, {"ad_id": "123"})],
    "impressions_clicks/B": [("impressions", 300, {"ad_id": "456"})],
    "search_click": [
        ("searches", 0, {"query": "lamp"}),
        ("clicks", 60, {"query": "lamp", "position": 3, "product_id": "P1"}),
        ("clicks", 61 * 60, {"query": "lamp", "position": 4, "product_id": "P2"}),
    ],
    "fraud_country/4:59": [
        ("logins", 0, {"success": True, "country": "France"}),
        ("payments", 299, {"order_id": "1", "amount": "12.300", "country": "Spain"}),
    ],
    "fraud_country/5:00": [
        ("logins", 0, {"success": True, "country": "France"}),
        ("payments", 300, {"order_id": "2", "amount": "12.300", "country": "Spain"}),
    ],
    "failed_logins": [
        ("logins", minute * 60, {"success": minute in (1, 3), "country": "Spain"}) for minute in range(5)
    ],
}


def sent() -> list[Sent]:
    """Every event of the examples. They arrive out of order, but on time."""
    records = []
    for user, events in EXAMPLES.items():
        for number, (stream, second, fields) in enumerate(events):
            at = START + timedelta(seconds=second)
            value = {"event_id": f"{user}-{number}", "event_time": at.isoformat(), "user_id": user, "session_id": user}
            arrival = at + timedelta(seconds=1 if number % 2 else 4)
            records.append(Sent(stream, user.encode(), json.dumps(value | fields).encode(), arrival))
    return records
