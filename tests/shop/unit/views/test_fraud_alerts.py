"""A login from one country, a payment from another, less than five minutes later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import fraud_alerts as oracle
from tests.shop.unit.views.events import CUTS, MANY, records_of, rows_of
from tests.shop.unit.views.feed import bag
from tests.support.records import at

from shop.views.fraud_alerts import VIEW

SECONDS = st.sampled_from(range(0, 1500, 50))
COUNTRIES = st.sampled_from(["France", "Spain", None])
USERS = st.sampled_from(["u1", "u2"])
LOGIN = st.fixed_dictionaries({"user_id": USERS, "country": COUNTRIES, "success": st.booleans()})
PAYMENT = st.fixed_dictionaries(
    {"user_id": USERS, "country": COUNTRIES, "order_id": st.just("o1"), "amount": st.just("12.300")}
)
EVENTS = st.lists(
    st.one_of(st.tuples(st.just("logins"), SECONDS, LOGIN), st.tuples(st.just("payments"), SECONDS, PAYMENT)),
    max_size=25,
)


def wanted(stream, payload):
    counts = payload["country"] is not None and (stream == "payments" or payload["success"])
    return payload["user_id"] if counts else None


def login(second, country="France", success=True):
    return ("logins", second, {"user_id": "u1", "country": country, "success": success})


def payment(second, country="Spain"):
    return ("payments", second, {"user_id": "u1", "country": country, "order_id": "o1", "amount": "12.300"})


def rows(events, cuts=()):
    return rows_of(VIEW, wanted, events, cuts)


@MANY
@given(EVENTS, CUTS)
def test_alerts_are_those_of_the_oracle_wherever_micro_batches_end(events, cuts):
    assert bag(rows(events, cuts)) == bag(oracle.rows(records_of(events, "logins", "payments")))


@pytest.mark.parametrize(("seconds", "alerts"), [(299, 1), (300, 0), (0, 0), (-1, 0)])
def test_fraud_country(seconds, alerts):
    assert len(rows([login(1000), payment(1000 + seconds)])) == alerts


def test_a_payment_from_the_country_of_the_login_is_none():
    assert rows([login(0), payment(60, "France")]) == []


def test_a_failed_login_makes_nobody_suspect():
    assert rows([login(0, success=False), payment(60)]) == []


def test_a_payment_gives_one_alert_however_many_logins_it_contradicts():
    (alert,) = rows([login(0), login(20), login(40, "Spain"), payment(60)])
    assert (alert["login_at"], alert["at"]) == (at(20), at(60))
