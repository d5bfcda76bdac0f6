"""How often live queries begin a micro-batch: so that batch has its share of the cores, and a slow query too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.service.pace import LASTING_SECONDS, LONGEST_SECONDS, Interval, seconds_between_batches, with_the_load

SECONDS = st.floats(0, 1000)


def test_a_few_queries_look_each_second_and_many_take_turns():
    assert seconds_between_batches(1, cores=2) == 1
    assert seconds_between_batches(4, cores=2) == 4
    assert seconds_between_batches(8, cores=16) == 1


@pytest.mark.parametrize(("slowest", "every"), [(0, 4), (3, 4), (7.9, 4), (8, 8), (9, 9), (60, LONGEST_SECONDS)])
def test_where_the_slowest_query_takes_twice_as_long_as_usual_the_others_wait_for_it(slowest, every):
    assert with_the_load(4, 4, slowest) == every


@pytest.mark.parametrize(("slowest", "every"), [(9, 8), (4.1, 8), (4, 4), (0, 4)])
def test_when_it_is_fast_again_they_are_as_often_as_before(slowest, every):
    assert with_the_load(4, 8, slowest) == every


@given(usual=st.floats(1, 100), now=st.floats(1, 100), slowest=st.lists(SECONDS, min_size=1))
def test_no_query_is_started_again_for_a_small_difference(usual, now, slowest):
    for seconds in slowest:
        before, now = now, with_the_load(usual, now, seconds)
        assert now == before or now >= 2 * before or now <= before / 2


@given(usual=st.floats(1, 100), slowest=SECONDS)
def test_it_is_never_more_often_than_usual_and_not_much_more_seldom_than_users_expect(usual, slowest):
    assert usual <= with_the_load(usual, usual, slowest) <= max(usual, LONGEST_SECONDS)


def test_they_follow_a_load_that_lasts_and_no_shorter_one():
    interval, later = Interval(), LASTING_SECONDS
    assert interval.follow(4, slowest=0, now=0) == 4, "from the start on"
    assert interval.follow(4, slowest=9, now=1) == 4
    assert interval.follow(4, slowest=3, now=later) == 4, "it did not last"
    assert interval.follow(4, slowest=9, now=later + 1) == 4
    assert interval.follow(4, slowest=9, now=2 * later - 1) == 4
    assert interval.follow(4, slowest=9, now=2 * later) == 9
    assert interval.follow(4, slowest=3, now=2 * later + 1) == 9, "nor is it over at once"
    assert interval.follow(4, slowest=3, now=3 * later) == 4
