"""Recently viewed: after each product page, the last ten products that the user has looked at, newest first.

Each row is final; a user's newest one is what counts: ``max_by(products, at) ... GROUP BY user_id``. A product looked at again
moves to the front, and one that was not looked at for 30 days falls out.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

KEPT = 10
FORGOTTEN_AFTER = timedelta(days=30)
PAGE = "/product/"


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the products and when they were last seen, newest first."""
    product = event.data["page"].removeprefix(PAGE)
    others = [[p, at] for p, at in state or [] if p != product and event.time - at < FORGOTTEN_AFTER]
    recent = [[product, event.time], *others][:KEPT]
    row = {"user_id": event.data["user_id"], "event_id": event.data["event_id"], "products": [p for p, _ in recent]}
    return recent, [row]


def timer(state: State) -> datetime:
    """When the newest product is forgotten."""
    newest: datetime = state[0][1]
    return newest + FORGOTTEN_AFTER


def on_timer(_: State, __: datetime) -> tuple[State, list[Row]]:
    """The user is forgotten."""
    return None, []


VIEW = Keyed(
    name="recently_viewed",
    columns={"user_id": "STRING", "event_id": "STRING", "products": "ARRAY<STRING>"},
    key=("user_id", "event_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("event_id", "user_id", "page"), where=f"page LIKE '{PAGE}_%'"),),
    process=process,
    timer=timer,
    on_timer=on_timer,
    lookback=FORGOTTEN_AFTER,
)
