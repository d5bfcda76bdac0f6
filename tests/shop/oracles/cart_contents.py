"""What is in each cart after each event: for each row, all events of the cart since it was last checked out are done again."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each event of a cart."""
    values = (record.value or {} for record in on_time(accepted(records["cart_events"]), 10))
    by_cart: dict[str, list[tuple[Any, ...]]] = {}
    for v in sorted(values, key=lambda v: (parsed(v["event_time"]), v["event_id"])):
        by_cart.setdefault(v["cart_id"], []).append((v["event_id"], v["type"], v["product_id"], v["quantity"]))
    result = []
    for cart, events in by_cart.items():
        for number, (event_id, kind, _, _) in enumerate(events):
            earlier = [event for event in range(number) if events[event][1] == "checked_out"]
            since = earlier[-1] + 1 if earlier else 0
            row = {"cart_id": cart, "event_id": event_id, "checked_out": kind == "checked_out"}
            result.append(row | {"products": contents(events[since : number + 1])})
    return result


def contents(events: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The quantity of each product that is in a cart after these events."""
    found = []
    for product in sorted({product for _, kind, product, _ in events if kind in ("added", "quantity_set")}):
        quantity = 0
        for _, kind, of, by in events:
            if of == product and kind != "checked_out":
                quantity = {"added": quantity + (by or 0), "quantity_set": by, "removed": 0}[kind]
        if quantity:
            found.append({"product_id": product, "quantity": quantity})
    return found
