"""Three failed logins within five minutes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import failed_logins as oracle
from tests.shop.unit.views.happened import CUTS, MANY, at, bag, machines, records

from shop.views.failed_logins import VIEW

LOGIN = st.fixed_dictionaries(
    {
        "user_id": st.sampled_from(["u1", "u2"]),
        "success": st.sampled_from([True, False, False]),
        "country": st.just("Spain"),
    }
)
HAPPENED = st.lists(st.tuples(st.just("logins"), st.sampled_from(range(0, 2400, 50)), LOGIN), max_size=30)


def login(second, success=False):
    return ("logins", second, {"user_id": "u1", "success": success, "country": "Spain"})


def rows(happened, cuts=()):
    return machines(VIEW, lambda _, payload: None if payload["success"] else payload["user_id"], happened, cuts)


@MANY
@given(HAPPENED, CUTS)
def test_alerts_are_those_of_the_oracle_wherever_the_machine_was_stopped(happened, cuts):
    assert bag(rows(happened, cuts)) == bag(oracle.rows(records(happened, "logins")))


def test_failed_logins():
    happened = [login(0), login(60, success=True), login(120), login(180, success=True), login(240)]
    (alert,) = rows(happened)
    assert (alert["first_failed_at"], alert["at"]) == (at(0), at(240))


def test_two_failures_are_none_and_three_in_exactly_five_minutes_neither():
    assert rows([login(0), login(1)]) == []
    assert rows([login(0), login(150), login(300)]) == []


def test_a_burst_is_one_alert_and_another_burst_another():
    burst = [login(second) for second in range(0, 100, 10)]
    assert len(rows(burst)) == 1
    assert len(rows([*burst, *(login(1000 + second) for second in range(0, 100, 10))])) == 2
