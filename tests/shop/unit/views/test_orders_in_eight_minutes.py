"""The number of orders in the last eight minutes, at any moment."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import orders_in_eight_minutes as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag

from shop.views.orders_in_eight_minutes import VIEW

MINUTE = timedelta(minutes=1)
WHERE = st.fixed_dictionaries({"country": st.sampled_from(["France", "Spain", None])})
EVENTS = st.lists(st.tuples(st.just("payments"), st.sampled_from(range(0, 1800, 60)), WHERE), max_size=25)


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["country"] or "unknown", events, cuts)


def asked(found, moment):
    """The answer at a moment, in seconds after the first event."""
    return max(((r["at"], r["orders"]) for r in found if r["at"] <= moment), default=(None, 0))[1]


@MANY
@given(EVENTS, CUTS)
def test_counts_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "payments")))


@MANY
@given(EVENTS)
def test_no_two_rows_have_one_key(events):
    keys = [tuple(row[name] for name in VIEW.key) for row in rows(events)]
    assert len(keys) == len(set(keys))


def test_last_8_minutes():
    france = {"country": "France"}
    minutes = [0, 3, 5, 8, 8, 20]
    found = rows([("payments", minute * 60, france) for minute in minutes])
    first = min(row["at"] for row in found)
    by_hand = {0: 1, 4: 2, 5: 3, 7.99: 3, 8: 4, 10.99: 4, 11: 3, 13: 2, 15.99: 2, 16: 0, 19: 0, 20: 1, 28: 0}
    for minute, count in by_hand.items():
        assert asked(found, first + minute * MINUTE) == count, minute
        assert sum(minute - 8 < m <= minute for m in minutes) == count, "the hand has miscounted"
