"""The balance of each account after each of its events, from the log of the aggregate."""

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import account_balances as oracle
from tests.shop.unit.views.events import END, records_of
from tests.shop.unit.views.feed import assert_every_way_gives, batch, route

from shop.views.account_balances import VIEW

ACCOUNTS = st.sampled_from(["outside", "alice", "bob"])
LEDGERS = st.sampled_from(["GBP", "EUR"])
AMOUNTS = st.decimals("0.001", "99.999", places=3).map(str)
SECONDS = st.sampled_from(range(0, 500, 100))


def opened(ledger, account):
    return {"type": "opened", "ledger": ledger, "account": account}


def moved(ledger, payer, payee, amount):
    return {"type": "transferred", "ledger": ledger, "from_account": payer, "to_account": payee, "amount": amount}


PAYLOADS = st.builds(opened, LEDGERS, ACCOUNTS) | st.builds(moved, LEDGERS, ACCOUNTS, ACCOUNTS, AMOUNTS)
EVENTS = st.lists(st.tuples(st.just("account_events"), SECONDS, PAYLOADS), max_size=20)


def routed(records):
    """By account, the rows that reach its machine from any of the inputs."""
    by_key = defaultdict(list)
    for one in VIEW.inputs:
        (column,) = {"account", "from_account", "to_account"} & {*one.columns}

        def keys(_, row, column=column):
            if row["type"] == "opened":
                wanted = column == "account"
            else:
                wanted = column != "account" and row["from_account"] != row["to_account"]
            return [f"{row['ledger']}/{row[column]}"] if wanted else []

        for key, rows in route(replace(VIEW, inputs=(one,)), keys, records).items():
            by_key[key] += rows
    return by_key


def rows(*payloads):
    records = records_of(
        [("account_events", number, payload) for number, payload in enumerate(payloads)], "account_events"
    )
    return batch(VIEW, routed(records), END)


@given(EVENTS, st.randoms(use_true_random=False))
def test_balances_are_those_of_the_oracle_wherever_micro_batches_end(events, dice: Random):
    records = records_of(events, "account_events")
    assert_every_way_gives(oracle.rows(records), VIEW, routed(records), END, dice)


def test_a_transfer_is_two_rows_that_sum_to_zero_to_the_last_digit():
    found = rows(moved("GBP", "outside", "alice", "10.100"), moved("GBP", "alice", "bob", "0.001"))
    balances = {(row["account"], row["posted"]): row["balance"] for row in found}
    assert balances == {
        ("outside", Decimal("-10.100")): Decimal("-10.100"),
        ("alice", Decimal("10.100")): Decimal("10.100"),
        ("alice", Decimal("-0.001")): Decimal("10.099"),
        ("bob", Decimal("0.001")): Decimal("0.001"),
    }
    assert sum(row["posted"] for row in found) == 0


def test_an_account_that_was_opened_has_nothing():
    assert [(row["account"], row["posted"], row["balance"]) for row in rows(opened("GBP", "alice"))] == [
        ("alice", 0, 0)
    ]


def test_accounts_of_two_ledgers_with_one_name_are_two():
    found = rows(moved("GBP", "outside", "alice", "1.000"), moved("EUR", "outside", "alice", "2.000"))
    assert {(row["ledger"], row["balance"]) for row in found if row["account"] == "alice"} == {("GBP", 1), ("EUR", 2)}
