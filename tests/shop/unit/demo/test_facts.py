import pytest

from lockstep.status.model import Status, Stream
from shop.demo import facts


def orders(lag: int) -> Status:
    return Status([Stream("orders", "shop.orders", 10, lag={"bronze": 0, "silver": lag})], [])


@pytest.mark.parametrize(("lag", "holds"), [(0, True), (3, False)])
def test_a_layer_has_everything_when_nothing_is_behind(lag: int, holds: bool) -> None:
    assert facts.drained(orders(lag), "silver").holds == holds
    assert facts.sold(orders(lag)).holds == holds


def test_while_the_broker_is_away_nobody_knows_whether_a_layer_has_everything() -> None:
    away = Status([], [])
    for fact in (facts.drained(away, "bronze"), facts.drained(away, "gold"), facts.sold(away)):
        assert not fact.holds
        assert fact.found == "the broker does not answer"
