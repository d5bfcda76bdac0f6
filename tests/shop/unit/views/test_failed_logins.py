"""Three failed logins within five minutes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import failed_logins as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.support.records import at

from shop.views.failed_logins import VIEW

LOGIN = st.fixed_dictionaries(
    {
        "user_id": st.sampled_from(["u1", "u2"]),
        "success": st.sampled_from([True, False, False]),
        "country": st.just("Spain"),
    }
)
EVENTS = st.lists(st.tuples(st.just("logins"), st.sampled_from(range(0, 2400, 50)), LOGIN), max_size=30)


def login(second, success=False):
    return ("logins", second, {"user_id": "u1", "success": success, "country": "Spain"})


def rows(events, cuts=()):
    return rows_of(VIEW, lambda _, payload: None if payload["success"] else payload["user_id"], events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_alerts_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "logins")))


def test_failed_logins():
    events = [login(0), login(60, success=True), login(120), login(180, success=True), login(240)]
    (alert,) = rows(events)
    assert (alert["first_failed_at"], alert["at"]) == (at(0), at(240))


def test_two_failures_are_none_and_three_in_exactly_five_minutes_neither():
    assert rows([login(0), login(1)]) == []
    assert rows([login(0), login(150), login(300)]) == []


def test_a_burst_is_one_alert_and_another_burst_another():
    burst = [login(second) for second in range(0, 100, 10)]
    assert len(rows(burst)) == 1
    assert len(rows([*burst, *(login(1000 + second) for second in range(0, 100, 10))])) == 2
