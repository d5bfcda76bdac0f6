"""product_stock and low_stock_alerts follow from the shop's own times, in whatever order its tables are read."""

from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import low_stock_alerts, product_stock
from tests.shop.unit.views.feed import LiveMachine, assert_every_way_gives, route
from tests.support.records import at, change_record, table_records

from lockstep.definition import Event, states
from shop.views.low_stock_alerts import VIEW as ALERTS
from shop.views.product_stock import VIEW as STOCK

END = at(10_000)
PRODUCTS = st.sampled_from(["P1", "P2"])


def line(order, product, quantity, second):
    return {
        "order_id": order,
        "line_no": 1,
        "product_id": product,
        "quantity": quantity,
        "unit_price": "1.000",
        "ordered_at": at(second).isoformat(),
    }


def count(product, stock, second):
    return {"product_id": product, "stock": stock, "counted_at": at(second).isoformat()}


DAY = 86_400


def some_of(second):
    """Counts and lines of a few products."""
    counts = st.builds(count, PRODUCTS, st.integers(0, 60), second)
    lines = st.builds(line, st.sampled_from("ABCDEF"), PRODUCTS, st.integers(-5, 15), second)
    return st.tuples(st.lists(counts, max_size=12), st.lists(lines, max_size=14))


SECONDS, DAYS = st.integers(0, 50), st.integers(0, 100).map(lambda day: day * DAY)


def keys(stream, row):
    return [row["product_id"]]


@given(some_of(SECONDS) | some_of(DAYS), st.randoms(use_true_random=False))
def test_however_changes_interleave_the_rows_are_the_oracles(found, dice: Random):
    counts, lines = found
    records = {
        "inventory": table_records("inventory", ("product_id",), counts),
        "order_lines": table_records("order_lines", ("order_id", "line_no"), lines),
    }
    for view, oracle in ((STOCK, product_stock), (ALERTS, low_stock_alerts)):
        routed = route(view, keys, records)
        assert_every_way_gives(oracle.rows(records), view, routed, END, dice)


def rows(view, *records):
    """What the live layer emits for a product, change by change."""
    by_stream = {name: [r for r in records if r.stream == name] for name in ("inventory", "order_lines")}
    changes = sorted(route(view, keys, by_stream)["P1"], key=lambda row: row["_position"])
    return LiveMachine(view).deliver(*changes)


def test_order_stock():
    """An order is placed, and arrives again: the same change, and a later change that writes the same row."""
    placed = line("A", "P1", 3, 5)
    order = change_record("order_lines", 2, 5, None, placed)
    again = change_record("order_lines", 9, 6, None, placed)
    emitted = rows(STOCK, change_record("inventory", 1, 0, None, count("P1", 10, 0)), order, order, again)
    assert [row["stock"] for row in emitted] == [10, 7, 7]


def test_what_was_ordered_before_the_count_is_in_the_count():
    lines = [change_record("order_lines", n, s, None, line(str(n), "P1", 3, s)) for n, s in ((1, 4), (2, 5), (3, 6))]
    assert rows(STOCK, *lines, change_record("inventory", 4, 9, None, count("P1", 10, 5)))[-1]["stock"] == 4


def test_only_what_comes_after_everything_else_is_added_to_the_row():
    first, moved = line("A", "P1", 3, 5), line("A", "P1", 3, 9)
    counted = change_record("inventory", 1, 0, None, count("P1", 20, 0))
    placed = change_record("order_lines", 2, 5, None, first)
    assert rows(ALERTS, counted, placed, change_record("order_lines", 3, 9, first, moved))[-1]["stock"] == 17
    at_that_instant = change_record("inventory", 3, 9, count("P1", 20, 0), count("P1", 50, 5))
    assert rows(ALERTS, counted, placed, at_that_instant)[-1]["stock"] == 47
    not_known = change_record("order_lines", 3, 9, line("B", "P1", 4, 9), None)
    assert rows(ALERTS, counted, placed, not_known)[-1]["stock"] == 17


def test_an_alert_begins_below_the_threshold_and_ends_with_the_next_full_count():
    first, full = count("P1", 25, 0), count("P1", 100, 60)
    emitted = rows(
        ALERTS,
        change_record("inventory", 1, 0, None, first),
        change_record("order_lines", 2, 5, None, line("A", "P1", 5, 5)),
        change_record("order_lines", 3, 10, None, line("B", "P1", 1, 10)),
        change_record("order_lines", 4, 20, None, line("C", "P1", 9, 20)),
        change_record("inventory", 5, 60, first, full),
    )
    assert [(row["low"], row["stock"]) for row in emitted] == [
        (False, 25),
        (False, 20),
        (True, 19),
        (True, 10),
        (False, 100),
    ]
    assert {k: emitted[-1][k] for k in ("alerts", "since", "lowest", "recovered_at")} == {
        "alerts": 1,
        "since": at(10),
        "lowest": 10,
        "recovered_at": at(60),
    }


def counts_at(*times):
    """A product with ten pieces, of which one is ordered in the third second, is counted at these; then its row is deleted."""
    counts = [count("P1", 10 if second == 0 else 50, second) for second in times]
    moves = pairwise([None, *counts, None])
    changes = [change_record("inventory", n, n, before, after) for n, (before, after) in enumerate(moves, 2)]
    return change_record("order_lines", 1, 1, None, line("A", "P1", 1, 3)), *changes


def test_what_happened_before_the_last_five_counts_is_forgotten():
    five, six = counts_at(0, 4, 5, 6, 7), counts_at(0, 4, 5, 6, 7, 8)
    assert [rows(ALERTS, *records[:-1])[-1]["alerts"] for records in (five, six)] == [1, 0]
    assert [rows(STOCK, *records)[-1]["sold"] for records in (five, six)] == [1, 0]


def change(stream, row, position, committed):
    return Event(committed, "/".join(map(str, row.values())), stream, row | {"_deleted": False}, f"{position:020}")


@pytest.mark.parametrize("view", [STOCK, ALERTS], ids=lambda view: view.name)
@pytest.mark.parametrize("every", [DAY, 1], ids=["a day", "a second"])
def test_a_products_state_is_no_larger_after_many_counts_than_after_ten(view, every):
    state, sizes = None, {}
    for number in range(400):
        moment = at(number * every)
        counted = {"product_id": "P1", "stock": 50, "counted_at": states.text(moment)}
        ordered = {"product_id": "P1", "order_id": f"{number:03}", "line_no": 1, "quantity": 1}
        ordered |= {"ordered_at": states.text(moment + timedelta(milliseconds=500))}
        state, _ = view.process(state, change("inventory", counted, number, moment))
        state, _ = view.process(state, change("order_lines", ordered, number, moment))
        sizes[number] = len(states.dumps(state))
    assert sizes[399] <= 1.05 * sizes[10]
