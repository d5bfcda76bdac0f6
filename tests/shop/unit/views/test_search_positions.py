"""The click-through rate of a query's results, by position."""

from hypothesis import given
from tests.shop.oracles import search_positions as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.shop.unit.views.test_search_click_through import EVENTS, STREAMS

from shop.views.search_positions import VIEW


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: payload["query"], events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_rates_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, *STREAMS)))


def test_a_search_counts_once_for_each_position_that_was_clicked_and_once_for_any():
    one, other = {"session_id": "s1", "query": "lamp"}, {"session_id": "s2", "query": "lamp"}
    clicks = [("clicks", 10 + n, one | {"position": position}) for n, position in enumerate((2, 2, 5))]
    found = rows([("searches", 0, one), ("searches", 5, other), *clicks])
    assert [(r["position"], r["searches"], r["clicked"], r["ctr"]) for r in found] == [
        (0, 2, 1, 0.5),
        (2, 2, 1, 0.5),
        (5, 2, 1, 0.5),
    ]
