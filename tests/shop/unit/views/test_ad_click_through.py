"""Impressions and clicks, joined within ten minutes."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import ad_click_through as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.support.records import at

from lockstep.definition.view import MICROSECOND
from shop.views.ad_click_through import VIEW

STREAMS = ("impressions", "clicks")
AD = st.fixed_dictionaries({"ad_id": st.sampled_from(["a1", "a2"]), "user_id": st.sampled_from(["u1", "u2"])})
EVENTS = st.lists(st.tuples(st.sampled_from(STREAMS), st.sampled_from(range(0, 2400, 100)), AD), max_size=25)


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, p: f"{p['ad_id']} {p['user_id']}" if p["ad_id"] else None, events, cuts)


def shown(second, ad="123", user="A"):
    return ("impressions", second, {"ad_id": ad, "user_id": user})


def clicked(second, ad="123", user="A"):
    return ("clicks", second, {"ad_id": ad, "user_id": user})


@MANY
@given(EVENTS, CUTS)
def test_pairs_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, *STREAMS)))


def test_impressions_clicks():
    joined, unmatched = rows([shown(0), clicked(120), shown(300, "456", "B")])
    assert (joined["ad_id"], joined["user_id"], joined["delay_ms"]) == ("123", "A", 120_000)
    assert (unmatched["ad_id"], unmatched["user_id"], unmatched["click_no"]) == ("456", "B", 0)
    assert unmatched["at"] - MICROSECOND == at(300) + timedelta(minutes=10)  # 10:15
    assert sum(r["click_no"] == 1 for r in (joined, unmatched)) / 2 == 0.5


def test_a_click_after_exactly_ten_minutes_counts_and_a_millisecond_later_it_does_not():
    assert [r["click_no"] for r in rows([shown(0), clicked(600)])] == [1]
    assert [r["click_no"] for r in rows([shown(0), clicked(600.001)])] == [0]


def test_a_click_at_the_instant_of_the_impression_counts_whichever_comes_first():
    assert [r["delay_ms"] for r in rows([shown(0), clicked(0)])] == [0]
    assert [r["delay_ms"] for r in rows([clicked(0), shown(0)])] == [0]


def test_a_second_click_is_a_second_row():
    assert [(r["click_no"], r["delay_ms"]) for r in rows([shown(0), clicked(1), clicked(2)])] == [(1, 1000), (2, 2000)]
