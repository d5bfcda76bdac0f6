"""The feed of a customer: price changes of the products that the customer followed when the price changed.

A customer's feed is the rows with the customer's ``user_id``. ``version`` is the position of the change in the source's log
(``_lsn``), and ``old_price`` the price before it in that log.
"""

from datetime import datetime, timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed, subscriptions
from lockstep.definition.states import instant


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is a product's price and its followers."""
    state = state or subscriptions.empty() | {"price": None}
    data = event.data
    if event.stream == "follows":
        subscriptions.switch(state, data["user_id"], event.time, data["follows"])
        return state, []
    old, new = state["price"], None if data["_deleted"] else data["price"]
    state["price"] = new
    if old is None or new is None or old == new:
        return state, []
    changed = instant(data["updated_at"])
    what = {name: data[name] for name in ("product_id", "description")}
    what |= {"version": data["_lsn"], "changed_at": changed, "old_price": old, "new_price": new}
    return state, subscriptions.match(state, changed, what, _rows)


def on_timer(state: Any, at: datetime) -> tuple[Any, list[dict[str, Any]]]:
    """The followers at this time are known: make their rows."""
    return subscriptions.on_timer(state, at, _rows)


def _rows(users: list[str], change: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"user_id": user} | change for user in users]


VIEW = Keyed(
    name="price_changes_followed",
    description="Each price change of a product, for each customer who followed the product then.",
    inputs=(
        Input(
            "products",
            "product_id",
            ("product_id", "description", "price", "updated_at", "_lsn"),
            time="_committed_at",
            where="updated_at IS NOT NULL",
        ),
        Input("follows", "product_id", ("user_id", "follows")),
    ),
    process=process,
    timer=subscriptions.timer,
    on_timer=on_timer,
    columns={
        "user_id": "STRING",
        "product_id": "STRING",
        "version": "BIGINT",
        "changed_at": "TIMESTAMP",
        "description": "STRING",
        "old_price": "DECIMAL(12,3)",
        "new_price": "DECIMAL(12,3)",
    },
    column_descriptions={
        "user_id": "The customer who followed the product.",
        "version": "The change: its position (LSN) in the log of the shop's database.",
        "changed_at": "When the price changed (UTC).",
        "old_price": "The list price before the change, in pounds.",
        "new_price": "The list price after the change, in pounds.",
    },
    key=("user_id", "product_id", "version"),
    allowed_lateness=timedelta(seconds=10),
)
