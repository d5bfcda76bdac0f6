"""The click-through rate of an ad."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import ad_ctr as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.support.records import at

from shop.views.ad_ctr import VIEW

STREAMS = ("impressions", "clicks")
AD = st.fixed_dictionaries({"ad_id": st.sampled_from(["a1", "a2"]), "user_id": st.sampled_from(["u1", "u2"])})
EVENTS = st.lists(st.tuples(st.sampled_from(STREAMS), st.sampled_from(range(0, 2400, 100)), AD), max_size=25)


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["ad_id"], events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_rates_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, *STREAMS)))


def test_a_click_counts_once_for_the_ten_minutes_in_which_the_ad_was_shown():
    one, other = {"ad_id": "a1", "user_id": "A"}, {"ad_id": "a1", "user_id": "B"}
    events = [("impressions", 590, one), ("impressions", 500, other), ("clicks", 700, one), ("clicks", 710, one)]
    (row,) = rows(events)
    assert (row["window_start"], row["impressions"], row["clicked"], row["ctr"]) == (at(0), 2, 1, 0.5)
