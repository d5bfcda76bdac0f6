"""Sessions of users: activity with less than ten minutes between two events."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every session of every user."""
    activity = defaultdict(list)
    for stream in ("page_views", "payments"):
        for record in on_time(accepted(records[stream]), 10):
            activity[record.value["user_id"]].append((parsed(record.value["event_time"]), stream))
    result = []
    for user, events in activity.items():
        times = sorted(time for time, _ in events)
        starts = [t for i, t in enumerate(times) if i == 0 or (t - times[i - 1]).total_seconds() >= 600]
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            inside = [(t, s) for t, s in events if t >= start and (following is None or t < following)]
            end = max(t for t, _ in inside)
            result.append(
                {
                    "user_id": user,
                    "session_start": start,
                    "session_end": end,
                    "pages": sum(s == "page_views" for _, s in inside),
                    "duration_ms": (end - start) // timedelta(milliseconds=1),
                    "converted": any(s == "payments" for _, s in inside),
                }
            )
    return result
