"""The ten pages with the most views in fifteen minutes, every minute. Exact: fewer than 10,000 pages are sent."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.windows import payloads_by_window

SIZE, SLIDE = timedelta(minutes=15), timedelta(minutes=1)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Up to ten ranks of every window."""
    groups = payloads_by_window(records, "page_views", 5, SIZE, SLIDE, lambda view: view["page"])
    return top(groups, SIZE, "page")


def top(groups: Mapping[Any, list[Any]], size: timedelta, item: str) -> list[dict[str, Any]]:
    """The ten largest groups of each window; of equal ones the lower name first."""
    counts: dict[Any, list[tuple[int, Any]]] = {}
    for (start, name), views in groups.items():
        counts.setdefault(start, []).append((-len(views), name))
    return [
        {"window_start": start, "window_end": start + size, "rank": rank}
        | {item: name, "views": -negative, "exact": True, "views_error": 0, "rank_error": 0}
        for start, of_window in counts.items()
        for rank, (negative, name) in enumerate(sorted(of_window)[:10], 1)
    ]
