"""An exact sliding window of five minutes, one per event."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import activity_within_five_minutes as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag

from shop.views.activity_within_five_minutes import VIEW

ALL = ("page_views", "searches", "clicks")
USERS = st.fixed_dictionaries({"user_id": st.sampled_from(["u1", "u2"])})
EVENTS = st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from(range(0, 1800, 60)), USERS), max_size=25)
ONE = {"user_id": "u1"}


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["user_id"], events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_counts_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, *ALL)))


def test_sliding_5min():
    together = rows([("page_views", 58, ONE), ("page_views", 58 + 299, ONE)])
    apart = rows([("page_views", 58, ONE), ("page_views", 58 + 301, ONE)])
    assert [r["events"] for r in together] == [1, 2]
    assert [r["events"] for r in apart] == [1, 1]
