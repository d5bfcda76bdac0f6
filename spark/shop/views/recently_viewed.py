"""Recently viewed: after each product page, the last ten products that the user has viewed, newest first.

Each row is final. A user's newest row counts: ``max_by(products, at) ... GROUP BY user_id``. A product that is viewed again moves
to the front. A product that was not viewed for 30 days is left out.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

MAX_PRODUCTS = 10
FORGOTTEN_AFTER = timedelta(days=30)
PAGE = "/product/"


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the products with the times of their last views, newest first."""
    product = event.data["page"].removeprefix(PAGE)
    others = [[p, at] for p, at in state or [] if p != product and event.time - at < FORGOTTEN_AFTER]
    recent = [[product, event.time], *others][:MAX_PRODUCTS]
    row = {"user_id": event.data["user_id"], "event_id": event.data["event_id"], "products": [p for p, _ in recent]}
    return recent, [row]


def timer(state: State) -> datetime:
    """When the newest product is too old."""
    newest: datetime = state[0][1]
    return newest + FORGOTTEN_AFTER


def on_timer(_: State, __: datetime) -> tuple[State, list[Row]]:
    """Forget the user."""
    return None, []


VIEW = Keyed(
    name="recently_viewed",
    description="The last ten products that a user has viewed, after each view of a product.",
    columns={"user_id": "STRING", "event_id": "STRING", "products": "ARRAY<STRING>"},
    column_descriptions={
        "event_id": "The page view after which the list is so.",
        "products": (
            "The numbers of the products, the newest view first, each once. What was not viewed for 30 days is left "
            "out."
        ),
    },
    key=("user_id", "event_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("event_id", "user_id", "page"), where=f"page LIKE '{PAGE}_%'"),),
    process=process,
    timer=timer,
    on_timer=on_timer,
    lookback=FORGOTTEN_AFTER,
)
