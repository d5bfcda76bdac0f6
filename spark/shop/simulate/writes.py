"""What happens in the shop's tables, as SQL on a cursor. The caller owns the transaction."""

import io
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import pandas as pd
from psycopg2.extensions import cursor
from psycopg2.extras import execute_batch

from shop.simulate.chance import seeded
from shop.simulate.people import Change, changes, people
from shop.simulate.plan import Plan
from shop.simulate.retail import Retail

_MONDAY = 0
_STOCKTAKE_AT, _PRICES_CHANGE_AT, _PEOPLE_CHANGE_AT = time(5, 0), time(6, 30), time(7, 0)
_PRICE_CHANGES_PER_WEEK = 40
_FULL_STOCK, _REORDER_BELOW = 500, 100

_STOCKTAKE = """
UPDATE public.inventory AS i
SET stock = CASE WHEN i.stock - sold.quantity < %(reorder)s THEN %(full)s ELSE i.stock - sold.quantity END,
    counted_at = %(now)s
FROM (
    SELECT l.product_id, sum(l.quantity)::int AS quantity
    FROM public.orders AS o JOIN public.order_lines AS l USING (order_id)
    WHERE o.ordered_at >= %(since)s AND o.ordered_at < %(now)s
    GROUP BY l.product_id
) AS sold
WHERE sold.product_id = i.product_id
"""


def stock_the_shop(sql: cursor, plan: Plan, retail: Retail) -> None:
    """Every product with its first price and a seeded stock, as of the start of the simulation."""
    products = retail.products.assign(updated_at=plan.start)
    _copy(sql, "products", products[["product_id", "description", "price", "updated_at"]])
    rng = seeded("stock", plan.amounts.seed)
    stock = [rng.randrange(_REORDER_BELOW, 2 * _FULL_STOCK) for _ in range(len(products))]
    inventory = products[["product_id"]].assign(stock=stock, counted_at=plan.start)
    _copy(sql, "inventory", inventory)


def sign_up(sql: cursor, plan: Plan, retail: Retail, start: datetime | None, end: datetime) -> None:
    """Customers sign up with their first order: those of ``[start, end)``, or all before ``end`` if there is no start."""
    seen = retail.users["first_seen"]
    new = (seen < end) if start is None else (seen >= start) & (seen < end)
    if new.any():
        everyone = people(plan.amounts.seed, tuple(retail.users["user_id"]))
        users = pd.DataFrame(everyone).assign(created_at=seen, updated_at=seen)
        _copy(sql, "users", users[new])


def place_orders(sql: cursor, orders: pd.DataFrame, lines: pd.DataFrame) -> None:
    """Orders with their amounts, and their lines."""
    # In thousandths: floats add up whole numbers exactly.
    value = (lines["unit_price"] * 1000).round() * lines["quantity"]
    amounts = value.groupby(lines["order_id"]).sum() / 1000
    orders = orders.assign(amount=orders["order_id"].map(amounts))
    _copy(sql, "orders", orders[["order_id", "user_id", "country", "kind", "ordered_at", "amount"]])
    columns = ["order_id", "line_no", "product_id", "description", "quantity", "unit_price", "ordered_at"]
    _copy(sql, "order_lines", lines[columns])


def run_the_shop(sql: cursor, plan: Plan, retail: Retail, start: datetime, end: datetime) -> None:
    """Write what is due in ``[start, end)``: on Mondays a stocktake and new prices, every day some changes of customers."""
    for moment in _moments(_STOCKTAKE_AT, start, end):
        if moment.weekday() == _MONDAY:
            sold = {"since": moment - timedelta(weeks=1), "now": moment}
            sql.execute(_STOCKTAKE, sold | {"full": _FULL_STOCK, "reorder": _REORDER_BELOW})
    for moment in _moments(_PRICES_CHANGE_AT, start, end):
        if moment.weekday() == _MONDAY:
            rng = seeded("prices", plan.amounts.seed, _original_day(plan, moment))
            _change_prices(sql, rng, retail, moment, _PRICE_CHANGES_PER_WEEK)
    for moment in _moments(_PEOPLE_CHANGE_AT, start, end):
        known = retail.users["user_id"][retail.users["first_seen"] < moment].tolist()
        _change_people(sql, changes(plan.amounts.seed, _original_day(plan, moment), known), moment)


def trade(sql: cursor, orders: pd.DataFrame, lines: pd.DataFrame) -> None:
    """Orders of this moment, and what they take from the stock; what has become little is filled up."""
    place_orders(sql, orders, lines)
    sold = lines.groupby("product_id")["quantity"].sum()
    execute_batch(
        sql,
        "UPDATE public.inventory SET stock = CASE WHEN stock - %(sold)s < %(reorder)s THEN %(full)s ELSE stock - %(sold)s END, "
        "counted_at = %(now)s WHERE product_id = %(product)s",
        [
            {"sold": int(n), "product": product, "now": orders["ordered_at"].max()}
            | {"full": _FULL_STOCK, "reorder": _REORDER_BELOW}
            for product, n in sold.items()
        ],
    )


def change_a_little(sql: cursor, rng: Random, retail: Retail, moment: datetime) -> None:
    """A new price, and a customer who moves to another e-mail address or grows older."""
    _change_prices(sql, rng, retail, moment, 1)
    user = rng.choice(retail.users["user_id"])
    address = f"customer.{user}.{moment:%y%m%d%H%M%S}@example.org" if rng.random() < 0.5 else None
    _change_people(sql, [Change(user, address)], moment)


def _change_prices(sql: cursor, rng: Random, retail: Retail, moment: datetime, count: int) -> None:
    chosen = rng.sample(retail.products["product_id"].tolist(), min(count, len(retail.products)))
    execute_batch(
        sql,
        "UPDATE public.products SET price = round(price * %s::numeric, 2), updated_at = %s WHERE product_id = %s",
        [(rng.choice(("0.90", "0.95", "1.05", "1.10", "1.20")), moment, product) for product in chosen],
    )


def _change_people(sql: cursor, people_changes: Iterable[Change], moment: datetime) -> None:
    execute_batch(
        sql,
        "UPDATE public.users SET email = coalesce(%s, email), age = age + %s, updated_at = %s WHERE user_id = %s",
        [(change.new_email, 0 if change.new_email else 1, moment, change.user_id) for change in people_changes],
    )


def _original_day(plan: Plan, moment: datetime) -> date:
    """The day as the file has it: the same happens to whichever week it is moved."""
    return (moment - timedelta(weeks=plan.shift_weeks)).date()


def _moments(at: time, start: datetime, end: datetime) -> Iterator[datetime]:
    """This time of each day in ``[start, end)``."""
    moment = datetime.combine(start.date(), at, UTC)
    while moment < end:
        if moment >= start:
            yield moment
        moment += timedelta(days=1)


def _copy(sql: cursor, table: str, rows: pd.DataFrame) -> None:
    """Append the rows to the table of these columns; missing values become NULL."""
    buffer = io.StringIO(rows.to_csv(header=False, index=False, float_format="%.3f"))
    sql.copy_expert(f"COPY public.{table} ({', '.join(rows.columns)}) FROM STDIN WITH (FORMAT csv)", buffer)
