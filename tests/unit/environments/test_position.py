"""An environment takes records up to where the gold of production's views is."""

from lockstep import ledger
from lockstep.environments.position import common
from lockstep.ledger.ranges import Range

HOUR = 3_600_000


def entry(ends: dict[int, int], committed_at: int = 0, topic: str = "orders") -> ledger.Entry:
    return ledger.Entry("gold.one", 1, 1, "run", "v", tuple(of(topic, ends)), 0, {}, {}, committed_at)


def of(topic: str, ends: dict[int, int]) -> list[Range]:
    return [Range(topic, "id-1", p, 0, end) for p, end in ends.items()]


def test_it_is_what_all_views_have_passed() -> None:
    assert common([entry({0: 9, 1: 4}), entry({0: 7, 1: 5})], "orders") == {0: 7, 1: 4}


def test_a_view_that_stands_still_holds_nobody_back() -> None:
    still, current, last = entry({0: 1}, 0), entry({0: 8}, HOUR), entry({0: 9}, HOUR + 1)
    assert common([still, current, last], "orders") == {0: 8}


def test_other_topics_do_not_count() -> None:
    assert common([entry({0: 1}, topic="clicks")], "orders") == {}
    assert common([], "orders") == {}
