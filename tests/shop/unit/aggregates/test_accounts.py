"""What accounts accept, and what becomes of it."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from shop.aggregates.accounts import AGGREGATE, Account, Deposit, Open, Transfer, Withdraw, decide, evolve

ANN, BOB = Account(is_open=True, balance=Decimal(10)), Account(is_open=True)


def read(name):
    return {"ann": ANN, "bob": BOB}.get(name, AGGREGATE.initial)


def of(kind, account="ann", **fields):
    return kind(ledger="GBP", account=account, **fields)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (of(Withdraw, amount="10.001"), "insufficient_funds"),
        (of(Transfer, to_account="bob", amount=11), "insufficient_funds"),
        (of(Transfer, to_account="ann", amount=1), "same_account"),
        (of(Transfer, to_account="nobody", amount=1), "no_such_account"),
        (of(Transfer, to_account="outside", amount=1), "no_such_account"),
        (of(Deposit, account="nobody", amount=1), "no_such_account"),
        (of(Withdraw, account="outside", amount=1), "no_such_account"),
        (of(Open, account="outside"), "no_such_account"),
        (of(Open), "already_open"),
    ],
)
def test_what_would_break_the_ledger_is_rejected_with_the_reason(command, reason):
    assert decide(read, command).reason == reason


def test_a_transfer_is_one_event_and_changes_both_accounts():
    (event,) = decide(read, of(Transfer, to_account="bob", amount="2.5"))
    assert event.entities == ("ann", "bob")
    assert [evolve(read(name), name, event).balance for name in event.entities] == [Decimal("7.5"), Decimal("2.5")]


def test_a_withdrawal_of_everything_is_accepted():
    (event,) = decide(read, of(Withdraw, amount=10))
    assert evolve(ANN, "ann", event).balance == 0


@pytest.mark.parametrize("amount", ["0", "-1", "0.0001", "NaN", "Infinity", "1e20", "ten"])
def test_an_amount_that_is_no_money_is_no_command(amount):
    with pytest.raises(ValidationError):
        of(Deposit, amount=amount)
