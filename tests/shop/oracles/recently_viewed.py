"""The last ten products that a user has viewed."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

PAGE = "/product/"


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each view of a product page, with the products in the order in which they are met when going back from it."""
    views = sorted(
        (parsed(r.value["event_time"]), r.value["event_id"], r.value["user_id"], r.value["page"][len(PAGE) :])
        for r in on_time(accepted(records["page_views"]), 10)
        if r.value["page"].startswith(PAGE) and r.value["page"] != PAGE
    )
    result = []
    for number, (time, event_id, user, _) in enumerate(views):
        products: list[str] = []
        for earlier, _, other_user, product in reversed(views[: number + 1]):
            if other_user == user and product not in products and (time - earlier).days < 30:
                products.append(product)
        result.append({"user_id": user, "event_id": event_id, "products": products[:10]})
    return result
