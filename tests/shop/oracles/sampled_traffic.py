"""Page views of the first six of every ten minutes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.windows import payloads_by_window

SIZE, SLIDE = timedelta(minutes=6), timedelta(minutes=10)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every window of every page that was viewed in it."""
    groups = payloads_by_window(records, "page_views", 10, SIZE, SLIDE, lambda view: view["page"])
    return [
        {"window_start": start, "window_end": start + SIZE, "page": page, "views": len(seen)}
        for (start, page), seen in groups.items()
    ]
