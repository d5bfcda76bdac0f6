"""How often live jobs begin a micro-batch: so that batch has its share of the cores, also where many records arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.service.pace import HIGH, LASTING_SECONDS, LOW, Load, seconds_between_batches

LOOK = 20
CORES = 2


class Shop:
    """Sends records at a rate, while the load is looked at."""

    def __init__(self) -> None:
        self.load, self.now, self.views = Load(CORES), 0, 0
        self.load.saw(0, {"views": 0})

    def is_high_after(self, rate: float, seconds: float = LASTING_SECONDS) -> bool | None:
        """Whether the load is high after so many seconds more with a rate of records."""
        for _ in range(round(seconds / LOOK)):
            self.now += LOOK
            self.views += round(rate * LOOK)
            self.load.saw(self.now, {"views": self.views})
        return self.load.is_high


def test_a_few_queries_look_each_second_and_many_take_turns():
    assert seconds_between_batches(1, cores=2) == 1
    assert seconds_between_batches(4, cores=2) == 4
    assert seconds_between_batches(8, cores=16) == 1


def test_views_over_windows_leave_time_to_keyed_views_but_never_wait_where_there_are_none():
    assert seconds_between_batches(4, cores=2, beside_keyed=True) == 6
    assert seconds_between_batches(1, cores=2, beside_keyed=False) == 1
    assert seconds_between_batches(8, cores=32, beside_keyed=True) == 1


def test_where_many_records_arrive_there_are_half_as_many_micro_batches():
    assert seconds_between_batches(4, cores=2, is_high=True) == 8
    assert seconds_between_batches(4, cores=2, beside_keyed=True, is_high=True) == 12


def test_a_load_is_high_when_it_has_lasted_and_no_more_when_it_was_low_for_as_long():
    shop = Shop()
    assert shop.is_high_after(0, LASTING_SECONDS - LOOK) is None, "it is not known yet"
    assert shop.is_high_after(0, LOOK) is False
    assert not shop.is_high_after(CORES * HIGH * 2, LASTING_SECONDS - LOOK)
    assert shop.is_high_after(CORES * HIGH * 2, LOOK)
    assert shop.is_high_after(0, LASTING_SECONDS - LOOK)
    assert not shop.is_high_after(0, LOOK)


def test_a_history_that_is_sent_at_once_is_no_load_however_much_it_is():
    shop = Shop()
    shop.is_high_after(0)
    assert not shop.is_high_after(CORES * HIGH * 100, LASTING_SECONDS - LOOK)
    assert not shop.is_high_after(0)


@pytest.mark.parametrize("was_high", [True, False])
@given(rates=st.lists(st.floats(CORES * LOW * 1.1, CORES * HIGH * 0.9), min_size=1, max_size=20))
def test_a_load_between_the_two_limits_changes_nothing(was_high, rates):
    shop = Shop()
    shop.is_high_after(CORES * HIGH * 2 if was_high else 0)
    assert {shop.is_high_after(rate, LOOK) for rate in rates} == {was_high}


def test_a_topic_that_is_new_gone_or_created_again_is_no_load():
    load = Load(CORES)
    load.saw(0, {"views": 10, "old": 5})
    load.saw(LASTING_SECONDS, {"views": 0, "new": 1_000_000})
    assert load.is_high is False
