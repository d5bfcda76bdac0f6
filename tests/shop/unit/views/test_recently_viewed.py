"""The last ten products of a user."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import recently_viewed as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag

from shop.views.recently_viewed import VIEW

DAY = 86_400
PAGES = st.sampled_from(["/", "/cart", "/product/", *(f"/product/P{n}" for n in range(12))])
VIEWED = st.fixed_dictionaries({"user_id": st.sampled_from(["u1", "u2"]), "page": PAGES})
SECONDS = st.one_of(st.sampled_from(range(0, 1200, 100)), st.sampled_from(range(0, 50 * DAY, 5 * DAY)))
EVENTS = st.lists(st.tuples(st.just("page_views"), SECONDS, VIEWED), max_size=30)


def wanted(_, payload):
    page = payload["page"]
    return payload["user_id"] if page.startswith("/product/") and page != "/product/" else None


def rows(events, cuts=()):
    return rows_of(VIEW, wanted, events, cuts)


def lists(*products):
    views = [("page_views", n, {"user_id": "u1", "page": f"/product/{p}"}) for n, p in enumerate(products)]
    return [row["products"] for row in rows(views)]


@MANY
@given(EVENTS, CUTS)
def test_lists_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "page_views")))


def test_a_product_looked_at_again_moves_to_the_front():
    assert lists("A", "B", "A") == [["A"], ["B", "A"], ["A", "B"]]


def test_ten_products_are_kept():
    assert lists(*"ABCDEFGHIJKL")[-1] == list("LKJIHGFEDC")
