"""What one change costs in batch, by the number of rows that the view has: `orders_with_customer` after a change of a customer.

    python benchmarks/cost_of_a_change.py

Needs no server. The view has ten orders for each customer. Of a roll-up it measures what depends on the view's size: the machines
are read, one of them processes the change, all are saved, and the customer's ten rows are merged into gold.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import typer
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

from lockstep import lake
from lockstep.batch.compute import go_on
from lockstep.batch.saved_machines import SCHEMA, SavedMachines
from lockstep.definition.keyed import final
from lockstep.definition.machine import Machine, as_table
from lockstep.settings import Settings
from shop.views.orders_with_customer import VIEW

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ORDERS_EACH, ROUNDS = 10, 5
PARTS = ("read", "run", "save", "merge")
START = datetime(2026, 1, 1, tzinfo=UTC)
GOLD = "gold.orders_with_customer"
TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DECIMAL(12,3)": pa.decimal128(12, 3),
}
GOLD_SCHEMA = pa.schema([(name, TYPES[kind]) for name, kind in VIEW.output_columns.items()])


def machines(customers: int) -> pa.Table:
    """The machines of so many customers, each with its orders."""
    order = {"country": "France", "kind": "sale", "amount": Decimal("12.500"), "ordered_at": START.isoformat()}

    def machine(number: int) -> str:
        orders = {f"{number}-{n}": {"user_id": f"u{number}", **order} for n in range(ORDERS_EACH)}
        return Machine({"customer": {"name": f"N{number}", "age": 40}, "orders": orders}).dump()

    rows = [{"_key": f"u{n}", "_timer": None, "_machine": machine(n)} for n in range(customers)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def change(number: int, age: int) -> dict[str, Any]:
    """A change of a customer, as :func:`lockstep.definition.events.events` gives it."""
    data = f'{{"name": "N{number}", "age": {age}, "_deleted": false}}'
    at = (START + timedelta(seconds=age)).timestamp() * 1_000_000
    row = {"_key": f"u{number}", "_id": f'["u{number}"]', "_stream": "users", "_data": data}
    return row | {"_time": int(at), "_position": f"{age:020}"}


@contextmanager
def timed(found: list[float]) -> Iterator[None]:
    """Add the seconds of the block."""
    began = time.perf_counter()
    yield
    found.append(time.perf_counter() - began)


def measured(home: Path, size: int) -> list[float]:
    """The medians of the seconds of each part, with a view of this size."""
    settings, customers = Settings(home=home / str(size)), size // ORDERS_EACH
    files = SavedMachines(settings, VIEW.name)
    of_all = machines(customers)
    newest = files.save(of_all)
    every = [change(number, 40) for number in range(customers)]
    write_deltalake(lake.path(settings, GOLD), as_gold(run(of_all, every)[0]))
    parts: dict[str, list[float]] = {name: [] for name in PARTS}
    for age in range(41, 41 + ROUNDS):
        with timed(parts["read"]):
            saved = files.load(newest)
        with timed(parts["run"]):
            out, after = run(saved, [change(customers // 2, age)])
        with timed(parts["save"]):
            newest = files.save(after)
        rows = as_gold(out)
        with timed(parts["merge"]):
            lake.merge(rows, settings, GOLD, VIEW.key, "true", lake.Txn("benchmark", age), {})
    return [median(seconds) for seconds in parts.values()]


def run(saved: pa.Table, rows: list[dict[str, Any]]) -> tuple[list[Any], pa.Table]:
    """The rows that the changes give, and the machines after."""
    out, after = go_on(VIEW, saved, rows, START + timedelta(days=1), upserts=True)
    return final(VIEW, out), after


def as_gold(out: list[Any]) -> pa.Table:
    """The rows as the table has them."""
    return as_table(out, GOLD_SCHEMA)


def main() -> None:
    table = Table("rows of the view", *PARTS, "all")
    with tempfile.TemporaryDirectory() as home:
        for size in SIZES:
            seconds = measured(Path(home), size)
            table.add_row(f"{size:,}", *(f"{each:.3f}" for each in [*seconds, sum(seconds)]))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
