"""price_changes_followed: a price change is a row for each customer who followed the product at that time."""

from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import price_changes_followed as oracle
from tests.shop.unit.views.feed import LiveMachine, assert_every_way_gives, batch, route
from tests.support.records import at, change_record, event_record, table_records

from shop.views.price_changes_followed import VIEW

END = at(10_000)
PRODUCTS = st.sampled_from(["P1", "P2"])


def product(name, price, second):
    return {"product_id": name, "description": "LAMP", "price": f"{price}.000", "updated_at": at(second).isoformat()}


def follow(number, user, name, follows, second, delay=0.5):
    return event_record("follows", number, second, delay, user_id=user, product_id=name, follows=follows)


def keys(stream, row):
    return [row["product_id"]]


@given(
    st.lists(st.builds(product, PRODUCTS, st.integers(1, 4), st.integers(0, 60)), max_size=10),
    st.lists(
        st.tuples(st.sampled_from("ab"), PRODUCTS, st.booleans(), st.integers(0, 60), st.floats(0, 12)), max_size=10
    ),
    st.randoms(use_true_random=False),
)
def test_however_changes_and_follows_interleave_the_rows_are_the_oracles(products, follows, dice: Random):
    records = {
        "products": table_records("products", ("product_id",), products),
        "follows": [follow(n, *one) for n, one in enumerate(follows)],
    }
    routed = route(VIEW, keys, records)
    assert_every_way_gives(oracle.rows(records), VIEW, routed, END, dice)


def test_follow_then_unfollow():
    cheap, dear, cheaper = (product("P1", price, second) for price, second in ((5, 0), (6, 30), (4, 60)))
    records = {
        "products": [
            change_record("products", 1, 0, None, cheap),
            change_record("products", 2, 30, cheap, dear),
            change_record("products", 3, 60, dear, cheaper),
        ],
        "follows": [
            follow(1, "anna", "P1", True, 10),
            follow(2, "anna", "P1", False, 40),
            follow(3, "ben", "P1", True, 50),
        ],
    }
    rows = batch(VIEW, route(VIEW, keys, records), END)
    assert [(row["user_id"], row["old_price"], row["new_price"], row["version"]) for row in rows] == [
        ("anna", Decimal(5), Decimal(6), 2),
        ("ben", Decimal(6), Decimal(4), 3),
    ]


def test_a_price_that_arrives_late_reaches_the_customers_who_followed_then():
    cheap, dear = product("P1", 5, 0), product("P1", 6, 30)
    follows = [follow(1, "anna", "P1", True, 10), follow(2, "anna", "P1", False, 40)]
    records = {
        "products": [change_record("products", 1, 0, None, cheap), change_record("products", 2, 99, cheap, dear)]
    }
    machine, routed = LiveMachine(VIEW), route(VIEW, keys, records | {"follows": follows})["P1"]
    first, late = (row for row in routed if row["_position"])
    assert machine.deliver(first, *(row for row in routed if not row["_position"])) == []
    assert machine.pass_to(at(110)) == []
    assert [row["user_id"] for row in machine.deliver(late)] == ["anna"]
