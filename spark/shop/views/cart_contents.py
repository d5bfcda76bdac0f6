"""What is in each cart, after each event of it. A cart's newest row counts: ``max_by(products, struct(at, event_id))``."""

from datetime import timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the quantities by product. A cart that was checked out does not change any more, and is forgotten."""
    data, quantities = event.data, dict(state or {})
    kind, product = data["type"], data["product_id"]
    if kind == "removed":
        quantities.pop(product, None)
    elif kind == "added":
        quantities[product] = quantities.get(product, 0) + data["quantity"]
    elif kind == "quantity_set":
        quantities[product] = data["quantity"]
    is_over = kind == "checked_out"
    products = [{"product_id": name, "quantity": quantity} for name, quantity in sorted(quantities.items())]
    row = {"cart_id": data["cart_id"], "event_id": data["event_id"], "products": products, "checked_out": is_over}
    return None if is_over else quantities, [row]


VIEW = Keyed(
    name="cart_contents",
    description="What is in each shopping cart, after each event of it.",
    columns={
        "cart_id": "STRING",
        "event_id": "STRING",
        "products": "ARRAY<STRUCT<product_id: STRING, quantity: INT>>",
        "checked_out": "BOOLEAN",
    },
    column_descriptions={
        "event_id": "The event after which the cart is so. Of events of one instant, the smaller id comes first.",
        "products": "The products and their quantities, by the products' numbers; empty: there is nothing in the cart.",
        "checked_out": "Whether the cart was bought with this event: it does not change any more.",
    },
    key=("cart_id", "event_id"),
    # As for the balances of accounts: heartbeats may pass an event that is just being decided.
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("cart_events", "cart_id", ("event_id", "type", "cart_id", "product_id", "quantity")),),
    process=process,
)
