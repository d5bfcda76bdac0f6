"""The retail history as the shop's tables. The errors in the data are kept. Pure.

Amounts are floats of at most three decimals here, and become exact with ``%.3f``. Times are UTC, to the minute.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import pandas as pd

DATA = Path(__file__).parent / "data" / "online_retail.parquet"
_KINDS = {"C": "cancellation", "A": "adjustment"}


@dataclass(frozen=True)
class Retail:
    """The shop's tables.

    Attributes:
        users: user_id, first_seen (time of the first order).
        products: product_id, description (the most frequent, else missing), price (likewise, 0 when never positive).
        orders: order_id, user_id (missing when unknown), country, kind, ordered_at; sorted by time, then file order.
        lines: order_id, line_no (from 1, in file order), product_id, description, quantity, unit_price, and the
            order's ordered_at; sorted like the orders, then by number.
    """

    users: pd.DataFrame
    products: pd.DataFrame
    orders: pd.DataFrame
    lines: pd.DataFrame

    def between(self, start: datetime, end: datetime) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The orders placed in ``[start, end)``, and their lines."""
        return _between(self.orders, start, end), _between(self.lines, start, end)


def whole_weeks(last_day: date, today: date) -> int:
    """The most whole weeks by which ``last_day`` can move and still lie no later than the day before ``today``."""
    return (today - timedelta(days=1) - last_day).days // 7


def read(path: Path = DATA) -> pd.DataFrame:
    """The file as it is, with its own columns, names and times."""
    return pd.read_parquet(path)


def tables(raw: pd.DataFrame, shift_weeks: int = 0) -> Retail:
    """Derive the shop's tables from the file's rows, moved forward by whole weeks."""
    moved = raw["InvoiceDate"].dt.tz_localize("UTC") + timedelta(weeks=shift_weeks)
    by_order = raw["InvoiceNo"]
    lines = pd.DataFrame(
        {
            "order_id": by_order,
            "line_no": raw.groupby(by_order).cumcount() + 1,
            "product_id": raw["StockCode"],
            "description": raw["Description"],
            "quantity": raw["Quantity"],
            "unit_price": raw["UnitPrice"],
            # Some invoices were keyed in across two minutes: an order has one time, its first.
            "ordered_at": moved.groupby(by_order).transform("min"),
        }
    )
    first = ~by_order.duplicated()
    orders = pd.DataFrame(
        {
            "order_id": by_order[first],
            "user_id": raw["CustomerID"][first].astype("string"),
            "country": raw["Country"][first],
            "kind": by_order[first].str[0].map(_KINDS).fillna("sale"),
            "ordered_at": lines["ordered_at"][first],
        }
    ).sort_values("ordered_at", kind="stable", ignore_index=True)
    rank = pd.Series(orders.index, index=orders["order_id"])
    lines = lines.iloc[(lines["order_id"].map(rank)).argsort(kind="stable")].reset_index(drop=True)
    first_seen = orders.dropna(subset="user_id").groupby("user_id")["ordered_at"].min()
    return Retail(first_seen.rename("first_seen").reset_index(), _products(raw), orders, lines)


def _products(raw: pd.DataFrame) -> pd.DataFrame:
    products = pd.DataFrame({"product_id": sorted(raw["StockCode"].unique())})
    prices = _most_frequent(raw[raw["UnitPrice"] > 0], "UnitPrice")
    return products.assign(
        description=products["product_id"].map(_most_frequent(raw, "Description")),
        price=products["product_id"].map(prices).fillna(0.0),
    )


def _most_frequent(raw: pd.DataFrame, column: str) -> pd.Series:
    """Per product the most frequent value; the one seen last among equals."""
    seen = raw[["StockCode", column]].dropna().assign(position=range(len(raw[column].dropna())))
    counted = seen.groupby(["StockCode", column], as_index=False)["position"].agg(["size", "max"])
    return counted.sort_values(["size", "max"]).drop_duplicates("StockCode", keep="last").set_index("StockCode")[column]


def _between(frame: pd.DataFrame, start: datetime, end: datetime) -> pd.DataFrame:
    bounds = frame["ordered_at"].searchsorted(pd.to_datetime([start, end], utc=True))
    return frame.iloc[bounds[0] : bounds[1]]
