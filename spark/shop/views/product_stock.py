"""Stock of each product now: the last count, less the pieces ordered since then. Cancellations bring pieces back.

A count may be corrected, and then lines before it count again. So the lines of some time before the newest count are remembered
(:data:`REMEMBERED_FOR`), and older ones are forgotten: what is remembered follows from the rows alone, in whatever order they are
read.
"""

from datetime import timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.states import instant, text

# How long before the newest count of a product its lines still count, if that count is deleted or moved back.
REMEMBERED_FOR = timedelta(days=30)

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
    state = state or {"count": None, "from": "", "lines": {}, "sold": 0}
    data = event.data
    if event.stream == "inventory":
        state["count"] = None if data["_deleted"] else {"stock": data["stock"], "at": data["counted_at"]}
        if not data["_deleted"]:
            state["from"] = remembered_from(state["from"], data["counted_at"])
            state["lines"] = {number: line for number, line in state["lines"].items() if line[0] >= state["from"]}
        state["sold"] = sum(_since(state, line) for line in state["lines"].values())
    else:
        number, line = f"{data['order_id']}/{data['line_no']}", [data["ordered_at"], data["quantity"]]
        previous = state["lines"].pop(number, None)
        state["sold"] -= _since(state, previous) if previous else 0
        if not data["_deleted"] and line[0] >= state["from"]:
            state["lines"][number] = line
            state["sold"] += _since(state, line)
    return state, [_row(data["product_id"], state)]


def remembered_from(since: str, counted_at: str) -> str:
    """From when on what happened to a product is remembered after a count; a whole day, so that this does not change often.

    Args:
        since: from when on it was until now.
    """
    day = (instant(counted_at) - REMEMBERED_FOR).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(since, text(day))


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
