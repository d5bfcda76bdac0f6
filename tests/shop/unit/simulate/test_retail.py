"""The shop's tables keep what the file has, its errors included."""

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shop.simulate import retail
from shop.simulate.plan import Amounts, Plan
from shop.simulate.retail import Retail

days = st.dates(min_value=date(2000, 1, 1), max_value=date(2100, 1, 1))


@given(last=days, ahead=st.integers(min_value=1, max_value=20_000))
def test_the_history_moves_by_the_most_whole_weeks_that_end_before_today(last: date, ahead: int) -> None:
    today = last + timedelta(days=ahead)
    moved = last + timedelta(weeks=retail.whole_weeks(last, today))
    assert moved.weekday() == last.weekday()
    assert moved < today <= moved + timedelta(weeks=1)


def test_the_tables_have_the_rows_of_the_file(shop: Retail) -> None:
    sizes = [len(frame) for frame in (shop.users, shop.products, shop.orders, shop.lines)]
    assert sizes == [4_372, 4_070, 25_900, 541_909]


def test_no_amount_is_lost(raw: pd.DataFrame, shop: Retail) -> None:
    def total(prices: pd.Series, quantities: pd.Series) -> Decimal:
        return sum((Decimal(f"{p:.3f}") * q for p, q in zip(prices, quantities, strict=True)), Decimal(0))

    assert total(shop.lines["unit_price"], shop.lines["quantity"]) == total(raw["UnitPrice"], raw["Quantity"])


def test_the_last_28_days_have_82666_lines(raw: pd.DataFrame) -> None:
    plan = Plan.make(raw, 28, Amounts(), date(2026, 11, 21))
    _, lines = retail.tables(raw, plan.shift_weeks).between(plan.start, plan.end)
    assert len(lines) == 82_666


def test_exact_duplicate_lines_keep_their_own_numbers(raw: pd.DataFrame, shop: Retail) -> None:
    assert raw.duplicated().sum() == 5_268
    assert not shop.lines.duplicated(["order_id", "line_no"]).any()
    assert (shop.lines.groupby("order_id")["line_no"].max() == raw.groupby("InvoiceNo").size()).all()


def test_lines_are_numbered_in_the_order_of_the_file(raw: pd.DataFrame, shop: Retail) -> None:
    order = shop.lines[shop.lines["order_id"] == "536365"]
    assert order["line_no"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert order["product_id"].tolist() == raw[raw["InvoiceNo"] == "536365"]["StockCode"].tolist()


def test_the_prefix_of_an_order_gives_its_kind(shop: Retail) -> None:
    assert shop.orders["kind"].value_counts().to_dict() == {"sale": 22_061, "cancellation": 3_836, "adjustment": 3}
    assert shop.orders[shop.orders["kind"] == "cancellation"]["order_id"].str.startswith("C").all()


def test_an_order_keeps_its_own_country(shop: Retail) -> None:
    countries = shop.orders.dropna(subset="user_id").groupby("user_id")["country"].nunique()
    assert (countries > 1).sum() == 8


def test_an_order_without_customer_stays_without(raw: pd.DataFrame, shop: Retail) -> None:
    anonymous = set(raw[raw["CustomerID"].isna()]["InvoiceNo"])
    assert set(shop.orders[shop.orders["user_id"].isna()]["order_id"]) == anonymous


def test_an_order_keyed_in_across_two_minutes_has_one_time(raw: pd.DataFrame, shop: Retail, plan: Plan) -> None:
    shift = timedelta(weeks=plan.shift_weeks)
    first = raw.groupby("InvoiceNo")["InvoiceDate"].min().dt.tz_localize(UTC) + shift
    assert shop.orders.set_index("order_id")["ordered_at"].to_dict() == first.to_dict()
    assert shop.lines["ordered_at"].is_monotonic_increasing


@pytest.mark.parametrize("hours", [1, 7, 24])
def test_adjoining_slices_hold_every_line_once(shop: Retail, plan: Plan, hours: int) -> None:
    whole = shop.between(plan.start, plan.end)
    moments = pd.date_range(plan.start, plan.end + timedelta(hours=hours), freq=f"{hours}h").to_pydatetime()
    parts = [shop.between(start, end) for start, end in itertools.pairwise(moments)]
    for number in (0, 1):
        pd.testing.assert_frame_equal(pd.concat([part[number] for part in parts]), whole[number])


def test_a_slice_without_orders_is_empty(shop: Retail) -> None:
    nobody = datetime(1999, 1, 1, tzinfo=UTC)
    orders, lines = shop.between(nobody, nobody + timedelta(days=1))
    assert orders.empty
    assert lines.empty
