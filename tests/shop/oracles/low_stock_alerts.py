"""Products with low stock: the stock at each instant is computed from all counts and lines, and alerts from the stock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.shop.oracles.changes import current, history
from tests.shop.oracles.product_stock import LINE, remembered_from
from tests.shop.oracles.record import Record, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every product that was ever counted or ordered."""
    counts = history(records["inventory"], ("product_id", "stock"))
    ordered = history(records["order_lines"], LINE)
    images = [row for change in counts + ordered for row in (change.before, change.after) if row]
    lines = [row for row in current(ordered, ("order_id", "line_no")) if row["ordered_at"]]
    result = []
    for product in sorted({row["product_id"] for row in images}):
        counted: dict[datetime, int] = {}
        for change in counts:
            row = change.after or change.before or {}
            if row["product_id"] == product and change.after is None:
                counted = {}
            elif row["product_id"] == product:
                counted[parsed(row["counted_at"])] = row["stock"]
        since = remembered_from(product, counts)
        counted = {at: stock for at, stock in counted.items() if at >= since}
        mine = [(parsed(line["ordered_at"]), line["quantity"]) for line in lines if line["product_id"] == product]
        mine = [(at, quantity) for at, quantity in mine if at >= since]
        result.append({"product_id": product} | _alerts(counted, mine))
    return result


def _stock(counted: dict[datetime, int], lines: list[tuple[datetime, int]], now: datetime) -> int | None:
    since = max((at for at in counted if at <= now), default=None)
    return None if since is None else counted[since] - sum(q for at, q in lines if since <= at <= now)


def _alerts(counted: dict[datetime, int], lines: list[tuple[datetime, int]]) -> dict[str, Any]:
    instants = sorted({*counted, *(at for at, _ in lines)})
    stocks = [(at, stock) for at in instants if (stock := _stock(counted, lines, at)) is not None]
    alerts: list[dict[str, Any]] = []
    for at, stock in stocks:
        is_open = bool(alerts) and alerts[-1]["recovered_at"] is None
        if is_open:
            alerts[-1]["all"].append(stock)
            if stock >= 30:
                alerts[-1]["recovered_at"] = at
        elif stock < 20:
            alerts.append({"since": at, "recovered_at": None, "all": [stock]})
    last = alerts[-1] if alerts else {"since": None, "recovered_at": None, "all": []}
    return {
        "low": bool(alerts) and last["recovered_at"] is None,
        "alerts": len(alerts),
        "since": last["since"],
        "lowest": min(last["all"], default=None),
        "recovered_at": last["recovered_at"],
        "stock": stocks[-1][1] if stocks else None,
    }
