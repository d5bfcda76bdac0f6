"""The share of an ad's impressions that were clicked, by ten minutes."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every ten minutes in which an ad was shown."""
    clicks = [r.value for r in on_time(accepted(records["clicks"]), 10)]
    verdicts = defaultdict(list)
    for record in on_time(accepted(records["impressions"]), 10):
        shown, at = record.value, parsed(record.value["event_time"])
        start = at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0)
        delays = [
            (parsed(c["event_time"]) - at).total_seconds()
            for c in clicks
            if (c.get("ad_id"), c["user_id"]) == (shown["ad_id"], shown["user_id"])
        ]
        verdicts[start, shown["ad_id"]].append(any(0 <= delay <= 600 for delay in delays))
    return [
        {
            "window_start": start,
            "window_end": start + timedelta(minutes=10),
            "ad_id": ad,
            "impressions": len(clicked),
            "clicked": sum(clicked),
            "ctr": sum(clicked) / len(clicked),
        }
        for (start, ad), clicked in verdicts.items()
    ]
