"""orders_with_customer: the last row of an order does not depend on which table is read first."""

from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import orders_with_customer as oracle
from tests.shop.oracles.tokens import token
from tests.shop.unit.views.feed import LiveMachine, assert_every_way_gives, batch, route
from tests.support.records import at, change_record, table_records
from tests.support.stored_machine import StoredMachine

from lockstep.definition import Event
from shop.views.orders_with_customer import VIEW

END = at(10_000)
USERS = st.sampled_from(["u1", "u2", "u3"])
ORDERS = st.builds(
    lambda order, user, amount: {
        "order_id": order,
        "user_id": user,
        "country": "France",
        "kind": "sale",
        "ordered_at": at(amount).isoformat(),
        "amount": f"{amount}.500",
    },
    st.sampled_from(["1", "2", "3"]),
    st.none() | USERS,
    st.integers(1, 99),
)
CUSTOMERS = st.builds(
    lambda user, age: {"user_id": user, "name": f"N{age}", "age": age, "updated_at": at(age).isoformat()},
    USERS,
    st.integers(18, 90),
)


def keys(stream, row):
    return [row["user_id"] or f"order {row['order_id']}"]


@given(st.lists(ORDERS, max_size=12), st.lists(CUSTOMERS, max_size=8), st.randoms(use_true_random=False))
def test_however_changes_interleave_the_rows_are_the_oracles(orders, customers, dice: Random):
    records = {
        "orders": table_records("orders", ("order_id",), orders),
        "users": table_records("users", ("user_id",), customers),
    }
    routed = route(VIEW, keys, records, token)
    assert_every_way_gives(oracle.rows(records), VIEW, routed, END, dice)


def test_orders_users():
    user = {"user_id": "123", "name": "Alice", "age": 30}
    order = {"order_id": "1", "user_id": "123", "country": "UK", "kind": "sale", "ordered_at": at(5).isoformat()}
    records = {
        "users": [
            change_record("users", 1, 0, None, user),
            change_record("users", 3, 9, user, user | {"name": "Alice Smith"}),
        ],
        "orders": [change_record("orders", 2, 5, None, order | {"amount": "100.000"})],
    }
    rows = LiveMachine(VIEW).deliver(*route(VIEW, keys, records)["123"])
    emitted = [(row["order_id"], row["name"], row["amount"]) for row in rows]
    assert emitted == [("1", "Alice", Decimal(100)), ("1", "Alice Smith", Decimal(100))]


def test_an_order_costs_the_same_however_many_its_customer_has():
    machine, moved = StoredMachine(VIEW), []
    order = {"user_id": "123", "country": "UK", "kind": "sale", "amount": Decimal("1.500"), "_deleted": False}
    for number in range(2_000):
        row = order | {"order_id": str(number), "ordered_at": at(number).isoformat()}
        # An hour later for each, so that none is remembered for coming again.
        machine.process(Event(at(3_600 * number), str(number), "orders", row, f"{number:020}"))
        moved.append(machine.moved)
    assert machine.size > 200_000
    assert sum(moved[1_000:]) / 1_000 < 1.5 * sum(moved[200:400]) / 200


def test_an_order_that_moves_is_deleted_with_the_customer_who_had_it():
    order = {"order_id": "1", "user_id": "a", "country": "UK", "kind": "sale", "ordered_at": at(5).isoformat()}
    order |= {"amount": "1.000"}
    records = {
        "users": [],
        "orders": [
            change_record("orders", 1, 0, None, order),
            change_record("orders", 2, 1, order, order | {"user_id": "b"}),
        ],
    }
    rows = batch(VIEW, route(VIEW, keys, records, token), END)
    assert {(row["customer"], row["deleted"]) for row in rows} == {("a", True), ("b", False)}
