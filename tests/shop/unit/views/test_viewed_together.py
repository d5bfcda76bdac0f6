"""Pairs of products of a visit."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import viewed_together as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.shop.unit.views.test_recently_viewed import wanted

from shop.views.viewed_together import VIEW

PAGES = st.sampled_from(["/", *(f"/product/P{n}" for n in range(5))])
VIEWED = st.fixed_dictionaries({"user_id": st.sampled_from(["u1", "u2"]), "page": PAGES})
EVENTS = st.lists(st.tuples(st.just("page_views"), st.sampled_from(range(0, 9000, 600)), VIEWED), max_size=25)


def rows(events, cuts=()):
    return rows_of(VIEW, wanted, events, cuts)


def viewed(second, product):
    return ("page_views", second, {"user_id": "u1", "page": f"/product/{product}"})


@MANY
@given(EVENTS, CUTS)
def test_pairs_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "page_views")))


def test_a_pair_is_told_once_a_visit():
    found = rows([viewed(0, "B"), viewed(60, "A"), viewed(120, "B"), viewed(180, "C")])
    assert [(r["product_id"], r["other_id"]) for r in found] == [("A", "B"), ("A", "C"), ("B", "C")]


def test_products_half_an_hour_apart_are_not_viewed_together():
    assert rows([viewed(0, "A"), viewed(1800, "B")]) == []
    assert len(rows([viewed(0, "A"), viewed(1799, "B")])) == 1


def test_a_robot_that_looks_at_everything_makes_the_pairs_of_thirty_products():
    assert len(rows([viewed(n, f"P{n:04d}") for n in range(500)])) == 30 * 29 / 2
