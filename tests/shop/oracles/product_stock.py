"""Stock of each product: the last count, less the order lines that exist and are not older."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.shop.oracles.changes import Change, current, history
from tests.shop.oracles.record import Record, parsed

LINE = ("order_id", "line_no", "product_id", "quantity", "unit_price")


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every product that was ever counted or ordered."""
    counts = history(records["inventory"], ("product_id", "stock"))
    ordered = history(records["order_lines"], LINE)
    stand = {row["product_id"]: row for row in current(counts, ("product_id",))}
    lines = [row for row in current(ordered, ("order_id", "line_no")) if row["ordered_at"]]
    images = [row for change in counts + ordered for row in (change.before, change.after) if row]
    products = sorted({row["product_id"] for row in images})
    return [_row(product, stand.get(product), lines, remembered_from(product, counts)) for product in products]


def remembered_from(product: str, counts: list[Change]) -> datetime:
    """Lines and counts before this time are forgotten: the earliest of the last five times of counts that there ever were."""
    times = {parsed(c.after["counted_at"]) for c in counts if c.after and c.after["product_id"] == product}
    return sorted(times)[-5] if len(times) >= 5 else datetime.min.replace(tzinfo=UTC)


def _row(product: str, count: dict[str, Any] | None, lines: list[dict[str, Any]], since: datetime) -> dict[str, Any]:
    mine = [line for line in lines if line["product_id"] == product and parsed(line["ordered_at"]) >= since]
    if count is None:
        sold = sum(line["quantity"] for line in mine)
        return {"product_id": product, "counted": None, "counted_at": None, "sold": sold, "stock": None}
    at = parsed(count["counted_at"])
    sold = sum(line["quantity"] for line in mine if parsed(line["ordered_at"]) >= at)
    return {
        "product_id": product,
        "counted": count["stock"],
        "counted_at": at,
        "sold": sold,
        "stock": count["stock"] - sold,
    }
