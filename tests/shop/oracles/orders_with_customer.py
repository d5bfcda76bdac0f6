"""Orders with their customer: a plain join of the last rows of the two tables."""

from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.changes import current, history, money
from tests.shop.oracles.record import Record, parsed
from tests.shop.oracles.tokens import token


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every order with each customer that ever had it. It is deleted with all but the last one."""
    orders = history(records["orders"], ("order_id", "kind", "ordered_at"))
    users = {row["user_id"]: row for row in current(history(records["users"], ("user_id",)), ("user_id",))}
    now = {row["order_id"]: row for row in current(orders, ("order_id",))}
    # The last row of each order with each customer.
    seen: dict[tuple[str, Any], dict[str, Any]] = {}
    for change in orders:
        for row in (change.before, change.after):
            if row is not None:
                seen[row["order_id"], row["user_id"]] = row
    return [
        _row(order, None, True) if now.get(order_id) is not order else _row(order, users.get(user_id), False)
        for (order_id, user_id), order in seen.items()
    ]


def _row(order: dict[str, Any], user: dict[str, Any] | None, deleted: bool) -> dict[str, Any]:
    return {
        "order_id": order["order_id"],
        "customer": order["user_id"] or "unknown",
        "country": order["country"],
        "kind": order["kind"],
        "amount": money(order["amount"]),
        "ordered_at": parsed(order["ordered_at"]),
        "name": token(user["name"], user["user_id"]) if user else None,
        "age": user["age"] if user else None,
        "deleted": deleted,
    }
