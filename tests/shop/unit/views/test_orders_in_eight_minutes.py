"""The number of orders in the last eight minutes, at any moment."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import orders_in_eight_minutes as oracle
from tests.shop.unit.views.happened import CUTS, MANY, bag, machines, records

from shop.views.orders_in_eight_minutes import VIEW

MINUTE = timedelta(minutes=1)
WHERE = st.fixed_dictionaries({"country": st.sampled_from(["France", "Spain", None])})
HAPPENED = st.lists(st.tuples(st.just("payments"), st.sampled_from(range(0, 1800, 60)), WHERE), max_size=25)


def rows(happened, cuts=()):
    return machines(VIEW, lambda _, payload: payload["country"] or "unknown", happened, cuts)


def asked(found, moment):
    """The answer at a moment, in seconds after the first event."""
    return max(((r["at"], r["orders"]) for r in found if r["at"] <= moment), default=(None, 0))[1]


@MANY
@given(HAPPENED, CUTS)
def test_counts_are_those_of_the_oracle_wherever_the_machine_was_stopped(happened, cuts):
    assert bag(rows(happened, cuts)) == bag(oracle.rows(records(happened, "payments")))


@MANY
@given(HAPPENED)
def test_no_two_rows_have_one_key(happened):
    keys = [tuple(row[name] for name in VIEW.key) for row in rows(happened)]
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
