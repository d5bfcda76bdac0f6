"""product_stock and low_stock_alerts: told from the shop's own times, in whatever order its tables are read."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import low_stock_alerts, product_stock
from tests.shop.unit.views.machines import at, batch, changed, fed, live, table, without_at

from lockstep.definition.keyed import advance, in_log_order
from lockstep.definition.registry import VIEWS

END = at(10_000)
STOCK, ALERTS = VIEWS["product_stock"], VIEWS["low_stock_alerts"]
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


LINES = st.builds(line, st.sampled_from("ABCDEF"), PRODUCTS, st.integers(-5, 15), st.integers(0, 50))
COUNTS = st.builds(count, PRODUCTS, st.integers(0, 60), st.integers(0, 50))


def keys(stream, row):
    return [row["product_id"]]


@given(st.lists(COUNTS, max_size=6), st.lists(LINES, max_size=14), st.randoms(use_true_random=False))
def test_however_changes_interleave_the_rows_are_the_oracles(counts, lines, dice: Random):
    records = {
        "inventory": table("inventory", ("product_id",), counts),
        "order_lines": table("order_lines", ("order_id", "line_no"), lines),
    }
    for view, oracle in ((STOCK, product_stock), (ALERTS, low_stock_alerts)):
        everything = fed(view, keys, records, str)
        expected = without_at(oracle.rows(records))
        assert without_at(batch(view, everything, END)) == expected
        assert without_at(live(view, everything, END, dice)) == expected


def rows(view, *records):
    by_stream = {name: [r for r in records if r.stream == name] for name in ("inventory", "order_lines")}
    changes = in_log_order(event for _, event in fed(view, keys, by_stream, str))
    return advance(view, None, changes, None)[1]


def test_order_stock():
    """An order is placed, and delivered again: by the log, and as another read of the same row."""
    placed = line("A", "P1", 3, 5)
    order = changed("order_lines", 2, 5, None, placed)
    again = changed("order_lines", 9, 6, None, placed)
    found = rows(STOCK, changed("inventory", 1, 0, None, count("P1", 10, 0)), order, order, again)
    assert [row["stock"] for row in found] == [10, 7, 7]


def test_what_was_ordered_before_the_count_is_in_the_count():
    lines = [changed("order_lines", n, s, None, line(str(n), "P1", 3, s)) for n, s in ((1, 4), (2, 5), (3, 6))]
    assert rows(STOCK, *lines, changed("inventory", 4, 9, None, count("P1", 10, 5)))[-1]["stock"] == 4


def test_an_alert_begins_below_the_threshold_and_ends_with_the_next_full_count():
    first, full = count("P1", 25, 0), count("P1", 100, 60)
    found = rows(
        ALERTS,
        changed("inventory", 1, 0, None, first),
        changed("order_lines", 2, 5, None, line("A", "P1", 5, 5)),
        changed("order_lines", 3, 10, None, line("B", "P1", 1, 10)),
        changed("order_lines", 4, 20, None, line("C", "P1", 9, 20)),
        changed("inventory", 5, 60, first, full),
    )
    assert [(row["low"], row["stock"]) for row in found] == [
        (False, 25),
        (False, 20),
        (True, 19),
        (True, 10),
        (False, 100),
    ]
    assert {k: found[-1][k] for k in ("alerts", "since", "lowest", "recovered_at")} == {
        "alerts": 1,
        "since": at(10),
        "lowest": 10,
        "recovered_at": at(60),
    }
