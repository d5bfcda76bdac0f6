"""Viewed together: each pair of products that a user has looked at in one go, with less than 30 minutes between two products.

A pair is a row once per such visit, when the visit is over; how often a pair was viewed together is the count of its rows. Only
the first 30 products of a visit make pairs, so that a robot's visit does not fill the table.
"""

from datetime import datetime, timedelta
from itertools import combinations

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

GAP = timedelta(minutes=30)
AT_MOST = 30
PAGE = "/product/"


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """One more product of the visit, or the first of a new one."""
    visit = state or {"user_id": event.data["user_id"], "start": event.time, "products": []}
    product = event.data["page"].removeprefix(PAGE)
    seen = visit["products"]
    new = [product] if product not in seen and len(seen) < AT_MOST else []
    return visit | {"last": event.time, "products": seen + new}, []


def timer(state: State) -> datetime:
    """The visit is over when no product was looked at for the gap."""
    last: datetime = state["last"]
    return last + GAP


def on_timer(state: State, _: datetime) -> tuple[State, list[Row]]:
    """The pairs of the visit, each in the order of its names."""
    visit = {"user_id": state["user_id"], "visit_start": state["start"]}
    pairs = combinations(sorted(state["products"]), 2)
    return None, [visit | {"product_id": one, "other_id": other} for one, other in pairs]


VIEW = Keyed(
    name="viewed_together",
    columns={
        "user_id": "STRING",
        "visit_start": "TIMESTAMP",
        "product_id": "STRING",
        "other_id": "STRING",
    },
    key=("user_id", "visit_start", "product_id", "other_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("user_id", "page"), where=f"page LIKE '{PAGE}_%'"),),
    process=process,
    timer=timer,
    on_timer=on_timer,
)
