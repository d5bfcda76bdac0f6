"""Price changes of followed products: each change is compared with every customer who ever followed a product."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.shop.oracles.changes import history, money
from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each change of a price and each customer who followed the product just before."""
    values = [record.value or {} for record in on_time(accepted(records["follows"]), 10)]
    follows = sorted(
        (parsed(v["event_time"]), v["event_id"], v["user_id"], v["product_id"], v["follows"]) for v in values
    )
    users = sorted({user for _, _, user, _, _ in follows})
    prices: dict[str, Decimal | None] = {}
    result = []
    for change in history(records["products"], ("product_id",)):
        row = change.after or change.before or {}
        product = row["product_id"]
        old, new = prices.get(product), money(change.after["price"]) if change.after else None
        prices[product] = new
        if old is None or new is None or old == new:
            continue
        at = parsed(row["updated_at"])
        for user in users:
            switches = [on for time, _, who, what, on in follows if who == user and what == product and time < at]
            if switches and switches[-1]:
                what = {"user_id": user, "product_id": product, "version": change.place[1], "changed_at": at}
                result.append(what | {"description": row["description"], "old_price": old, "new_price": new})
    return result
