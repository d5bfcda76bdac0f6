"""The ten products seen most in an hour, every five minutes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.trending_pages import top
from tests.shop.oracles.windows import gathered

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Up to ten ranks of every window."""
    groups = gathered(records, "page_views", 5, SIZE, SLIDE, _product)
    return top(groups, SIZE, "product_id")


def _product(view: dict[str, Any]) -> str | None:
    _, found, product = view["page"].partition("/product/")
    return product if found else None
