"""Searches and clicks, joined within an hour."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import search_click_through as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag

from shop.views.search_click_through import VIEW

STREAMS = ("searches", "clicks")
SEARCH = {"session_id": st.sampled_from(["s1", "s2"]), "query": st.sampled_from(["lamp", "tea"])}
FOUND = SEARCH | {"position": st.sampled_from([1, 2, None]), "product_id": st.just("P1")}
SECONDS = st.sampled_from(range(0, 9000, 600))
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("searches"), SECONDS, st.fixed_dictionaries(SEARCH)),
        st.tuples(st.just("clicks"), SECONDS, st.fixed_dictionaries(FOUND)),
    ),
    max_size=25,
)


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: f"{payload['session_id']} {payload['query']}", events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_pairs_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, *STREAMS)))


def test_search_click():
    search = {"session_id": "s1", "query": "lamp"}
    click = search | {"position": 3, "product_id": "P1"}
    events = [("searches", 0, search), ("clicks", 60, click), ("clicks", 61 * 60, click)]
    (row,) = rows(events)
    assert (row["click_no"], row["query"], row["position"], row["delay_ms"]) == (1, "lamp", 3, 60_000)
