"""Products with low stock: an alert begins below :data:`LOW` pieces, and ends at :data:`ENOUGH`.

The history of the stock follows from the shop's own times (``counted_at``, ``ordered_at``), so it does not matter in which order
the tables are read. Each product has one row, which changes with each alert and recovery.
"""

from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from lockstep.definition import Event, Keyed
from lockstep.definition.states import instant
from shop.views.product_stock import INPUTS

# Two limits, so that a stock around one of them does not raise alert after alert.
LOW, ENOUGH = 20, 30


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is all counts and order lines of a product."""
    state = state or {"counts": {}, "lines": {}}
    data = event.data
    if event.stream == "inventory" and data["_deleted"]:
        state["counts"] = {}
    elif event.stream == "inventory":
        state["counts"][data["counted_at"]] = data["stock"]
    else:
        number = f"{data['order_id']}/{data['line_no']}"
        state["lines"].pop(number, None)
        if not data["_deleted"]:
            state["lines"][number] = [data["ordered_at"], data["quantity"]]
    return state, [{"product_id": data["product_id"]} | _row(_history(state))]


def _history(state: Any) -> list[tuple[datetime, int]]:
    """The stock after each instant at which it changed, from the first count on."""
    counted = [(instant(at), 0, stock) for at, stock in state["counts"].items()]
    ordered = [(instant(at), 1, quantity) for at, quantity in state["lines"].values()]
    stock, history = None, []
    # At one instant the count comes first: what is ordered then is not in it.
    for at, changes in groupby(sorted(counted + ordered), key=lambda change: change[0]):
        for _, is_sale, number in changes:
            stock = number if not is_sale else stock - number if stock is not None else None
        if stock is not None:
            history.append((at, stock))
    return history


def _row(history: list[tuple[datetime, int]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "low": False,
        "alerts": 0,
        "since": None,
        "lowest": None,
        "recovered_at": None,
        "stock": None,
    }
    for at, stock in history:
        row["stock"] = stock
        if row["low"] and stock >= ENOUGH:
            row |= {"low": False, "recovered_at": at}
        elif not row["low"] and stock < LOW:
            row |= {"low": True, "alerts": row["alerts"] + 1, "since": at, "lowest": stock, "recovered_at": None}
        elif row["low"]:
            row["lowest"] = min(row["lowest"], stock)
    return row


VIEW = Keyed(
    name="low_stock_alerts",
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
    key=("product_id",),
    allowed_lateness=timedelta(0),
)
