"""Pairs of products that were viewed in one visit."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

PAGE = "/product/"


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Each pair of each visit, once."""
    views = defaultdict(list)
    for record in on_time(accepted(records["page_views"]), 10):
        page = record.value["page"]
        if page.startswith(PAGE) and page != PAGE:
            time, event_id = parsed(record.value["event_time"]), record.value["event_id"]
            views[record.value["user_id"]].append((time, event_id, page[len(PAGE) :]))
    result = []
    for user, seen in views.items():
        visits: list[list[Any]] = []
        for view in sorted(seen):
            if not visits or (view[0] - visits[-1][-1][0]).total_seconds() >= 1800:
                visits.append([])
            visits[-1].append(view)
        for visit in visits:
            products = list(dict.fromkeys(product for _, _, product in visit))[:30]
            result += [
                {"user_id": user, "visit_start": visit[0][0], "product_id": one, "other_id": other}
                for one in products
                for other in products
                if one < other
            ]
    return result
