"""Stock of each product now: the last count, less the pieces ordered since then. Cancellations bring pieces back.

A count may be corrected, and then lines before it count again. So the lines since some counts before the newest one are
remembered (:data:`REMEMBERED_COUNTS`), and older ones are forgotten: what is remembered follows from the rows alone, in whatever
order they are read. How much that is depends on what is sold between counts, and not on time.
"""

from datetime import timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.states import instant

# What happened before the earliest of so many counts of a product is forgotten.
REMEMBERED_COUNTS = 5

INPUTS = (
    Input("inventory", "product_id", ("product_id", "stock", "counted_at"), time="_committed_at"),
    Input(
        "order_lines",
        "product_id",
        ("product_id", "order_id", "line_no", "quantity", "ordered_at"),
        time="_committed_at",
        where="ordered_at IS NOT NULL",
    ),
)


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is the last count and the order lines by number, so the same order line delivered again changes nothing.

    Its times are texts as events have them, which sort as the times do: a product may have thousands of lines.
    """
    state = state or {"count": None, "counted": [], "lines": {}, "sold": 0}
    data = event.data
    if event.stream == "inventory":
        state["count"] = None if data["_deleted"] else {"stock": data["stock"], "at": data["counted_at"]}
        if not data["_deleted"]:
            state["counted"] = newest_counts(state["counted"], data["counted_at"])
            since = remembered_from(state["counted"])
            state["lines"] = {number: line for number, line in state["lines"].items() if line[0] >= since}
        state["sold"] = sum(_since(state, line) for line in state["lines"].values())
    else:
        number, line = f"{data['order_id']}/{data['line_no']}", [data["ordered_at"], data["quantity"]]
        previous = state["lines"].pop(number, None)
        state["sold"] -= _since(state, previous) if previous else 0
        if not data["_deleted"] and line[0] >= remembered_from(state["counted"]):
            state["lines"][number] = line
            state["sold"] += _since(state, line)
    return state, [_row(data["product_id"], state)]


def newest_counts(counted: list[str], at: str) -> list[str]:
    """When a product was counted the last times, in order, after one more count.

    Args:
        counted: the same before it.
    """
    return sorted({*counted, at})[-REMEMBERED_COUNTS:]


def remembered_from(counted: list[str]) -> str:
    """From when on what happened to a product is remembered, after its :func:`newest_counts`; empty: it all is."""
    return counted[0] if len(counted) == REMEMBERED_COUNTS else ""


def _since(state: Any, line: list[Any]) -> int:
    ordered, quantity = line
    return quantity if state["count"] is None or ordered >= state["count"]["at"] else 0


def _row(product: str, state: Any) -> dict[str, Any]:
    row = {"product_id": product, "counted": None, "counted_at": None, "sold": state["sold"], "stock": None}
    if count := state["count"]:
        row |= {"counted": count["stock"], "counted_at": instant(count["at"]), "stock": count["stock"] - state["sold"]}
    return row


VIEW = Keyed(
    name="product_stock",
    description="The stock of each product now: the last count, less what was ordered since.",
    inputs=INPUTS,
    process=process,
    columns={
        "product_id": "STRING",
        "counted": "INT",
        "counted_at": "TIMESTAMP",
        "sold": "BIGINT",
        "stock": "BIGINT",
    },
    column_descriptions={
        "counted": "Pieces at the last count; null: it was never counted.",
        "counted_at": "When it was last counted (UTC); null: never.",
        "sold": (
            "Pieces ordered since the last count, less those that were cancelled. Without a count, all orders are in "
            "it."
        ),
        "stock": "Pieces left: counted less sold; null: it was never counted.",
    },
    key=("product_id",),
    allowed_lateness=timedelta(0),
)
