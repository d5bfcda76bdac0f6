"""Facts that the demo waits for hold only if nothing is behind."""

import pytest

from lockstep.status.model import Status, Stream
from shop.demo import facts


def orders(lag: int) -> Status:
    return Status([Stream("orders", "shop.orders", 10, lag={"bronze": 0, "silver": lag})], [])


@pytest.mark.parametrize(("lag", "holds"), [(0, True), (3, False)])
def test_a_layer_has_everything_when_nothing_is_behind(lag: int, holds: bool) -> None:
    assert facts.drained(orders(lag), "silver").holds == holds
    assert facts.sold(orders(lag)).holds == holds


def test_no_fact_holds_while_the_broker_does_not_answer() -> None:
    no_answer = Status([], [])
    for fact in (facts.drained(no_answer, "bronze"), facts.drained(no_answer, "gold"), facts.sold(no_answer)):
        assert not fact.holds
        assert fact.seen == "the broker does not answer"
