"""Orders with their customer, both as they are now: a change of either emits the row again."""

from datetime import timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed, MapState
from lockstep.definition.states import instant

_ORDER = ("country", "kind", "amount", "ordered_at")
_CUSTOMER = ("name", "age")


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is a customer and their orders. A change of the customer emits all orders, a change of an order only that one."""
    state = state or {"customer": None, "orders": {}}
    data, gone = event.data, event.data["_deleted"]
    if event.stream == "users":
        state["customer"] = None if gone else {name: data[name] for name in _CUSTOMER}
        return state, [_row(order_id, order, state["customer"]) for order_id, order in state["orders"].items()]
    order_id, order = data["order_id"], {name: data[name] for name in ("user_id", *_ORDER)}
    if gone:
        state["orders"].pop(order_id, None)
        return state, [_row(order_id, order, None) | {"deleted": True}]
    state["orders"][order_id] = order
    return state, [_row(order_id, order, state["customer"])]


def _touched(event: Event) -> tuple[str] | None:
    return None if event.stream == "users" else (event.data["order_id"],)


def _row(order_id: str, order: dict[str, Any], customer: dict[str, Any] | None) -> dict[str, Any]:
    known = customer or dict.fromkeys(_CUSTOMER)
    columns = {name: order[name] for name in _ORDER} | {"ordered_at": instant(order["ordered_at"])}
    return {"order_id": order_id, "customer": order["user_id"] or "unknown", **columns, **known, "deleted": False}


VIEW = Keyed(
    name="orders_with_customer",
    description="Each order with its customer, both as they are now.",
    inputs=(
        # An order without a customer has a key of its own.
        Input(
            "orders",
            "coalesce(user_id, concat('order ', order_id))",
            ("order_id", "user_id", *_ORDER),
            time="_committed_at",
        ),
        Input("users", "user_id", _CUSTOMER, time="_committed_at"),
    ),
    process=process,
    map_state=MapState("orders", _touched),
    columns={
        "order_id": "STRING",
        "customer": "STRING",
        "country": "STRING",
        "kind": "STRING",
        "amount": "DECIMAL(12,3)",
        "ordered_at": "TIMESTAMP",
        "name": "STRING",
        "age": "INT",
        "deleted": "BOOLEAN",
    },
    column_descriptions={
        "customer": "The customer's number; unknown where the shop did not know.",
        "deleted": "Whether the order is gone, or has become another customer's.",
    },
    # With the customer: an order that moves to another customer stays, as deleted, with the one who had it.
    key=("order_id", "customer"),
    allowed_lateness=timedelta(0),
)
