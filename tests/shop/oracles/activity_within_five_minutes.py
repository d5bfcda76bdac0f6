"""For each event of a user, how many there were in the five minutes up to it."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """One row for each page view, search and click."""
    events = [
        (parsed(r.value["event_time"]), r.value["event_id"], stream, r.value["user_id"])
        for stream in ("page_views", "searches", "clicks")
        for r in on_time(accepted(records[stream]), 10)
    ]
    return [
        {
            "user_id": user,
            "event_id": event_id,
            "stream": stream,
            "events": sum(
                u == user and (t, i) <= (time, event_id) and (time - t).total_seconds() < 300 for t, i, _, u in events
            ),
        }
        for time, event_id, stream, user in events
    ]
