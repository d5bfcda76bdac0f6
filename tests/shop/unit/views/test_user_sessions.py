"""Sessions with a gap of ten minutes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import user_sessions as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.support.records import at

from shop.views.user_sessions import VIEW

USERS = st.fixed_dictionaries({"user_id": st.sampled_from(["u1", "u2"])})
STREAMS = st.sampled_from(["page_views", "page_views", "payments"])
EVENTS = st.lists(st.tuples(STREAMS, st.sampled_from(range(0, 7200, 150)), USERS), max_size=25)
ONE = {"user_id": "u1"}


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["user_id"], events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_sessions_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "page_views", "payments")))


def test_session_10min():
    found = rows([("page_views", minute * 60, ONE) for minute in (0, 5, 14, 25)])
    assert [(r["session_start"], r["session_end"], r["pages"]) for r in found] == [
        (at(0), at(14 * 60), 3),
        (at(25 * 60), at(25 * 60), 1),
    ]


def test_a_gap_of_exactly_ten_minutes_begins_a_new_session_and_a_second_less_does_not():
    assert [r["pages"] for r in rows([("page_views", 0, ONE), ("page_views", 600, ONE)])] == [1, 1]
    assert [r["pages"] for r in rows([("page_views", 0, ONE), ("page_views", 599, ONE)])] == [2]


def test_a_payment_converts_its_session_alone():
    events = [("page_views", 0, ONE), ("payments", 60, ONE), ("page_views", 1000, ONE)]
    assert [(r["converted"], r["duration_ms"]) for r in rows(events)] == [(True, 60_000), (False, 0)]
