"""An exact sliding window of five minutes, one per event."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import activity_within_five_minutes as oracle
from tests.shop.unit.views.happened import CUTS, MANY, bag, machines, records

from shop.views.activity_within_five_minutes import VIEW

ALL = ("page_views", "searches", "clicks")
USERS = st.fixed_dictionaries({"user_id": st.sampled_from(["u1", "u2"])})
HAPPENED = st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from(range(0, 1800, 60)), USERS), max_size=25)
ONE = {"user_id": "u1"}


def rows(happened, cuts=()):
    return machines(VIEW, lambda _, payload: payload["user_id"], happened, cuts)


@MANY
@given(HAPPENED, CUTS)
def test_counts_are_those_of_the_oracle_wherever_the_machine_was_stopped(happened, cuts):
    assert bag(rows(happened, cuts)) == bag(oracle.rows(records(happened, *ALL)))


def test_sliding_5min():
    together = rows([("page_views", 58, ONE), ("page_views", 58 + 299, ONE)])
    apart = rows([("page_views", 58, ONE), ("page_views", 58 + 301, ONE)])
    assert [r["events"] for r in together] == [1, 2]
    assert [r["events"] for r in apart] == [1, 1]
