"""Page views by minute and page."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every minute of every page that was viewed."""
    views: Counter[Any] = Counter()
    for record in on_time(accepted(records["page_views"]), 5):
        start = parsed(record.value["event_time"]).replace(second=0, microsecond=0)
        views[start, record.value["page"]] += 1
    return [
        {"window_start": start, "window_end": start + timedelta(minutes=1), "page": page, "views": count}
        for (start, page), count in views.items()
    ]
