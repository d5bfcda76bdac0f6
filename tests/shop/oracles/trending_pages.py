"""The ten most seen pages of fifteen minutes, every minute."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.windows import gathered

SIZE, SLIDE = timedelta(minutes=15), timedelta(minutes=1)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Up to ten ranks of every window."""
    groups = gathered(records, "page_views", 5, SIZE, SLIDE, lambda view: view["page"])
    return top(groups, SIZE, "page")


def top(groups: Mapping[Any, list[Any]], size: timedelta, item: str) -> list[dict[str, Any]]:
    """The ten largest groups of each window; of equal ones the lower name first."""
    found = []
    for start in {start for start, _ in groups}:
        counts = sorted((-len(views), name) for (at, name), views in groups.items() if at == start)
        found += [
            {"window_start": start, "window_end": start + size, "rank": rank}
            | {item: name, "views": -negative, "exact": True}
            for rank, (negative, name) in enumerate(counts[:10], 1)
        ]
    return found
