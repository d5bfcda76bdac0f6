"""The ten products with the most page views in an hour, every five minutes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.trending_pages import top
from tests.shop.oracles.windows import payloads_by_window

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)
PAGE = "/product/"


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Up to ten ranks of every window."""
    groups = payloads_by_window(records, "page_views", 5, SIZE, SLIDE, _product)
    return top(groups, SIZE, "product_id")


def _product(view: dict[str, Any]) -> str | None:
    page: str = view["page"]
    return page[len(PAGE) :] if page.startswith(PAGE) else None
