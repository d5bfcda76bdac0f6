"""What is in each cart after each of its events, from the log of the aggregate."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import cart_contents as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag

from lockstep.commands.aggregate import Entity
from shop.aggregates import carts
from shop.views.cart_contents import VIEW

PRODUCTS = st.sampled_from(["A", "B", "C"])


def event(kind, product=None, quantity=None, cart="c1"):
    return {"type": kind, "cart_id": cart, "product_id": product, "quantity": quantity}


PAYLOADS = (
    st.builds(
        event, st.sampled_from(["added", "quantity_set"]), PRODUCTS, st.integers(1, 9), st.sampled_from(["c1", "c2"])
    )
    | st.builds(event, st.just("removed"), PRODUCTS, cart=st.sampled_from(["c1", "c2"]))
    | st.just(event("checked_out"))
)
EVENTS = st.lists(st.tuples(st.just("cart_events"), st.sampled_from(range(0, 1000, 100)), PAYLOADS), max_size=20)


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["cart_id"], events, cuts)


def after(*payloads):
    """The row after the last of these events."""
    return rows([("cart_events", number, payload) for number, payload in enumerate(payloads)])[-1]


@MANY
@given(EVENTS, CUTS)
def test_contents_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "cart_events")))


def test_the_view_has_what_the_aggregate_has():
    events = [event("added", "A", 2), event("added", "B", 1), event("added", "A", 3), event("quantity_set", "B", 7)]
    events += [event("removed", "A"), event("checked_out")]
    entities = {("c1", "c1"): Entity(carts.AGGREGATE.initial)}
    for number, fields in enumerate(events, 1):
        given = {name: value for name, value in fields.items() if value is not None}
        entities |= dict(carts.AGGREGATE.after(entities, "c1", carts.AGGREGATE.event(given), None))
        state, row = entities["c1", "c1"].state, after(*events[:number])
        assert {one["product_id"]: one["quantity"] for one in row["products"]} == state.quantities
        assert row["checked_out"] == state.checked_out


def test_the_products_of_a_cart_that_was_checked_out_are_those_that_were_bought():
    row = after(event("added", "B", 2), event("added", "A", 1), event("checked_out"))
    assert row["products"] == [{"product_id": "A", "quantity": 1}, {"product_id": "B", "quantity": 2}]
