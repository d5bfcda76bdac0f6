"""Viewed together: each pair of products that a user has viewed in one visit, with less than 30 minutes between two views.

A pair becomes one row per visit, when the visit is over. The number of its rows is how often the pair was viewed together. Only
the first 30 products of a visit make pairs, so that a robot's visit does not fill the table.
"""

from datetime import datetime, timedelta
from itertools import combinations

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

GAP = timedelta(minutes=30)
MAX_PRODUCTS = 30
PAGE = "/product/"


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the open visit. The product belongs to it, or begins a new one."""
    visit = state or {"user_id": event.data["user_id"], "start": event.time, "products": []}
    product = event.data["page"].removeprefix(PAGE)
    viewed = visit["products"]
    new = [product] if product not in viewed and len(viewed) < MAX_PRODUCTS else []
    return visit | {"last": event.time, "products": viewed + new}, []


def timer(state: State) -> datetime:
    """When the gap after the last view is over."""
    last: datetime = state["last"]
    return last + GAP


def on_timer(state: State, _: datetime) -> tuple[State, list[Row]]:
    """The visit has ended: its pairs become rows, each with its two products in alphabetical order."""
    visit = {"user_id": state["user_id"], "visit_start": state["start"]}
    pairs = combinations(sorted(state["products"]), 2)
    return None, [visit | {"product_id": one, "other_id": other} for one, other in pairs]


VIEW = Keyed(
    name="viewed_together",
    description="Pairs of products that a user has viewed in one visit.",
    columns={
        "user_id": "STRING",
        "visit_start": "TIMESTAMP",
        "product_id": "STRING",
        "other_id": "STRING",
    },
    column_descriptions={
        "visit_start": "When the visit began (UTC): its first view of a product.",
        "product_id": "The number of one product: the lower of the two, as text.",
        "other_id": "The number of the other product.",
    },
    key=("user_id", "visit_start", "product_id", "other_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("user_id", "page"), where=f"page LIKE '{PAGE}_%'"),),
    process=process,
    timer=timer,
    on_timer=on_timer,
)
