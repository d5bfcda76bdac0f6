"""The share of a query's searches whose result at a position was clicked, by hour; position 0 is any."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every hour in which something was searched, and every position that was clicked."""
    clicks = [r.value for r in on_time(accepted(records["clicks"]), 10)]
    searches: defaultdict[Any, int] = defaultdict(int)
    clicked: defaultdict[Any, int] = defaultdict(int)
    for record in on_time(accepted(records["searches"]), 10):
        search, at = record.value, parsed(record.value["event_time"])
        hour = at.replace(minute=0, second=0, microsecond=0)
        searches[hour, search["query"]] += 1
        of_this = [
            click
            for click in clicks
            if (click["session_id"], click.get("query")) == (search["session_id"], search["query"])
            and 0 <= (parsed(click["event_time"]) - at).total_seconds() <= 3600
        ]
        clicked[hour, search["query"], 0] += bool(of_this)
        for position in {click.get("position") for click in of_this} - {None, 0}:
            clicked[hour, search["query"], position] += 1
    return [
        {
            "window_start": hour,
            "window_end": hour + timedelta(hours=1),
            "query": query,
            "position": position,
            "searches": searches[hour, query],
            "clicked": count,
            "ctr": count / searches[hour, query],
        }
        for (hour, query, position), count in clicked.items()
    ]
