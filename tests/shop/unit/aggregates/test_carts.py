"""A cart after each step, and why a product is in it."""

from datetime import UTC, datetime

import pytest

from lockstep.commands.decisions import Partition
from lockstep.commands.history import steps
from lockstep.commands.records import Record, partition_of
from shop.aggregates.carts import AGGREGATE, Add, Cart, CheckOut, Remove, SetQuantity, decide

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def of(kind, **fields):
    return kind(cart_id="c", **fields)


def played(*commands):
    partition = Partition(AGGREGATE, partition_of("c", AGGREGATE.partitions))
    records = (Record("carts.commands", 0, 0, b"c", c.model_dump_json().encode(), NOW) for c in commands)
    return steps(AGGREGATE, [event for record in records for event in partition.decide(record)[1]], "c", "c")


def test_each_step_says_what_is_in_the_cart_and_why():
    history = played(
        of(Add, product_id="A", because="search"),
        of(Add, product_id="B", because="recommended"),
        of(Remove, product_id="A", because="too expensive"),
        of(Add, product_id="A", because="price alert"),
        of(SetQuantity, product_id="A", quantity=3),
    )
    assert [dict(step.entity.state.quantities) for step in history] == [
        {"A": 1},
        {"A": 1, "B": 1},
        {"B": 1},
        {"A": 1, "B": 1},
        {"A": 3, "B": 1},
    ]
    of_a = [(s.recorded.event.type, s.recorded.event.because) for s in history if s.recorded.event.product_id == "A"]
    assert of_a == [("added", "search"), ("removed", "too expensive"), ("added", "price alert"), ("quantity_set", "")]


@pytest.mark.parametrize(
    ("cart", "command", "reason"),
    [
        (Cart(), of(Remove, product_id="A"), "not_in_cart"),
        (Cart(), of(SetQuantity, product_id="A", quantity=2), "not_in_cart"),
        (Cart(), of(CheckOut), "empty"),
        (Cart(quantities={"A": 999}), of(Add, product_id="A", quantity=2), "too_many"),
        (Cart(quantities={"A": 1}, checked_out=True), of(Add, product_id="B"), "checked_out"),
    ],
)
def test_what_a_cart_cannot_do_is_rejected_with_the_reason(cart, command, reason):
    assert decide(lambda _: cart, command).reason == reason


def test_the_quantity_that_is_there_already_changes_nothing():
    assert decide(lambda _: Cart(quantities={"A": 2}), of(SetQuantity, product_id="A", quantity=2)) == []


def test_adding_what_is_in_the_cart_makes_it_more():
    assert played(of(Add, product_id="A"), of(Add, product_id="A", quantity=2))[-1].entity.state.quantities == {"A": 3}
