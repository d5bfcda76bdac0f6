"""Products with low stock: an alert begins below :data:`LOW` pieces, and ends at :data:`ENOUGH`.

The history of the stock follows from the shop's own times (``counted_at``, ``ordered_at``), so it does not matter in which order
the tables are read. Each product has one row, which changes with each alert and recovery. What happened before some of its last
counts is forgotten, as in :mod:`~shop.views.product_stock`.
"""

from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from lockstep.definition import Event, Keyed
from lockstep.definition.states import instant
from shop.views.product_stock import INPUTS, REMEMBERED_COUNTS, newest_counts, remembered_from

# Two limits, so that a stock around one of them does not raise alert after alert.
LOW, ENOUGH = 20, 30
_NEVER_COUNTED = {"low": False, "alerts": 0, "since": None, "lowest": None, "recovered_at": None, "stock": None}
_TIMES = ("since", "recovered_at")
# When, and how many pieces. Times are texts as events have them, which sort as the times do.
_Change = tuple[str, int]


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is the remembered counts and order lines of a product, and what follows from them until the last instant.

    What happens after that instant, as nearly everything does, is added to it. Anything else is computed from the beginning.
    """
    state = state or {"counted": [], "counts": {}, "lines": {}, "until": "", "row": _NEVER_COUNTED}
    data = event.data
    is_count = event.stream == "inventory"
    changed, name, at, pieces = (
        (state["counts"], data["counted_at"], data["counted_at"], data["stock"])
        if is_count
        else (state["lines"], f"{data['order_id']}/{data['line_no']}", data["ordered_at"], data["quantity"])
    )
    is_next = not data["_deleted"] and name not in changed and at > state["until"]
    if data["_deleted"] and is_count:
        changed.clear()
    elif data["_deleted"]:
        changed.pop(name, None)
    else:
        changed[name] = [at, pieces]
    before = remembered_from(state["counted"])
    if is_count and not data["_deleted"]:
        state["counted"] = newest_counts(state["counted"], at)
    since = remembered_from(state["counted"])
    if is_next and since == before <= at:
        state["row"] = _after(state["row"], at, [(at, not is_count, pieces)])
        state["until"] = at
    else:
        kept = {of: {n: one for n, one in state[of].items() if one[0] >= since} for of in ("counts", "lines")}
        state |= kept | _from_the_beginning(kept["counts"].values(), kept["lines"].values())
    row = {k: instant(v) if v and k in _TIMES else v for k, v in state["row"].items()}
    return state, [{"product_id": data["product_id"]} | row]


def _from_the_beginning(counts: Iterable[_Change], lines: Iterable[_Change]) -> dict[str, Any]:
    counted = [(at, False, stock) for at, stock in counts]
    ordered = [(at, True, quantity) for at, quantity in lines]
    row, until = _NEVER_COUNTED, ""
    for at, changes in groupby(sorted(counted + ordered), key=itemgetter(0)):
        row, until = _after(row, at, changes), at
    return {"row": row, "until": until}


def _after(row: dict[str, Any], at: str, changes: Iterable[tuple[str, bool, int]]) -> dict[str, Any]:
    """The row after an instant. At one instant the count comes first: what is ordered then is not in it."""
    stock = row["stock"]
    for _, is_sale, pieces in changes:
        stock = pieces if not is_sale else stock - pieces if stock is not None else None
    row = row | {"stock": stock}
    if stock is None:
        return row
    if row["low"] and stock >= ENOUGH:
        return row | {"low": False, "recovered_at": at}
    if not row["low"] and stock < LOW:
        return row | {"low": True, "alerts": row["alerts"] + 1, "since": at, "lowest": stock, "recovered_at": None}
    return row | {"lowest": min(row["lowest"], stock)} if row["low"] else row


VIEW = Keyed(
    name="low_stock_alerts",
    description="Whether each product is low in stock, since when, and when it last recovered.",
    inputs=INPUTS,
    process=process,
    columns={
        "product_id": "STRING",
        "low": "BOOLEAN",
        "alerts": "INT",
        "since": "TIMESTAMP",
        "lowest": "BIGINT",
        "recovered_at": "TIMESTAMP",
        "stock": "BIGINT",
    },
    column_descriptions={
        "low": "Whether the product is low now: it fell below 20 pieces, and has not reached 30 since.",
        "alerts": (
            f"How often it has become low, as far as is remembered: since the earliest of its last {REMEMBERED_COUNTS} "
            "counts."
        ),
        "since": "When the newest alert began (UTC), as far as is remembered; null: it was never low.",
        "lowest": "The fewest pieces during the newest alert; null: it was never low.",
        "recovered_at": "When the newest alert ended (UTC); null: it goes on, or there was none.",
        "stock": "Pieces left: the last count, less what was ordered since; null: it was never counted.",
    },
    key=("product_id",),
    allowed_lateness=timedelta(0),
)
