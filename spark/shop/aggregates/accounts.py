"""Accounts in ledgers. Money is only moved: the balances of a ledger, with its outside account, always add up to zero.

A deposit comes from the outside account, and a withdrawal goes there. A transfer is one event of both accounts.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from lockstep.commands.aggregate import Aggregate, Command, Event, Read, Rejection, State

# All money that is in no account of the ledger; its balance is what it owes to them, below zero.
OUTSIDE = "outside"
# In the ledger's currency. Three decimals, as for payments.
Amount = Annotated[Decimal, Field(gt=0, max_digits=14, decimal_places=3)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


class Account(State):
    """An account: whether it was opened, and its balance, in the ledger's currency."""

    is_open: bool = False
    balance: Decimal = Decimal(0)


class AccountCommand(Command):
    """A command for an account of a ledger."""

    ledger: Name
    account: Name

    @property
    def key(self) -> str:
        """The ledger: money is moved within it."""
        return self.ledger

    @property
    def entity(self) -> str:
        """The account."""
        return self.account


class Open(AccountCommand):
    """Open an account."""

    type: Literal["open"] = "open"


class Deposit(AccountCommand):
    """Bring money from outside."""

    type: Literal["deposit"] = "deposit"
    amount: Amount


class Withdraw(AccountCommand):
    """Take money out."""

    type: Literal["withdraw"] = "withdraw"
    amount: Amount


class Transfer(AccountCommand):
    """Move money to another account of the ledger."""

    type: Literal["transfer"] = "transfer"
    to_account: Name
    amount: Amount


class Opened(Event):
    """An account was opened."""

    type: Literal["opened"] = "opened"
    ledger: str
    account: str

    @property
    def entities(self) -> tuple[str, ...]:
        """The account."""
        return (self.account,)


class Posting(Event):
    """Money has moved from one account to another."""

    ledger: str
    from_account: str
    to_account: str
    amount: Decimal

    @property
    def entities(self) -> tuple[str, ...]:
        """Both accounts: neither changes without the other."""
        return (self.from_account, self.to_account)


class Deposited(Posting):
    """Money has come from outside."""

    type: Literal["deposited"] = "deposited"


class Withdrawn(Posting):
    """Money was taken out."""

    type: Literal["withdrawn"] = "withdrawn"


class Transferred(Posting):
    """Money has moved within the ledger."""

    type: Literal["transferred"] = "transferred"


AnyCommand = Open | Deposit | Withdraw | Transfer
AnyEvent = Opened | Deposited | Withdrawn | Transferred


def decide(read: Read[Account], command: AnyCommand) -> Sequence[AnyEvent] | Rejection:
    """Money is moved between open accounts only, and never more than the account has."""
    account, ledger = command.account, command.ledger
    if account == OUTSIDE:
        return Rejection("no_such_account", f"{OUTSIDE} is no account of anybody")
    if isinstance(command, Open):
        if read(account).is_open:
            return Rejection("already_open", f"{account} is open")
        return [Opened(ledger=ledger, account=account)]
    others = [command.to_account] if isinstance(command, Transfer) else []
    for name in (account, *others):
        if not read(name).is_open:
            return Rejection("no_such_account", f"{ledger} has no open account {name}")
    if account in others:
        return Rejection("same_account", f"{account} cannot transfer to itself")
    if isinstance(command, Deposit):
        return [Deposited(ledger=ledger, from_account=OUTSIDE, to_account=account, amount=command.amount)]
    balance = read(account).balance
    if command.amount > balance:
        return Rejection("insufficient_funds", f"{account} has {balance}, and {command.amount} were asked for")
    kind, to = (Transferred, command.to_account) if isinstance(command, Transfer) else (Withdrawn, OUTSIDE)
    return [kind(ledger=ledger, from_account=account, to_account=to, amount=command.amount)]


def evolve(state: Account, entity: str, event: AnyEvent) -> Account:
    """The account after the event."""
    if isinstance(event, Opened):
        return state.model_copy(update={"is_open": True})
    moved = event.amount if entity == event.to_account else -event.amount
    return state.model_copy(update={"balance": state.balance + moved})


AGGREGATE: Aggregate[Account, AnyCommand, AnyEvent] = Aggregate(
    name="accounts",
    description="Accounts in ledgers. An account has a balance, which is never below zero; that of `outside` is what it owes.",
    initial=Account(),
    commands=(Open, Deposit, Withdraw, Transfer),
    events=(Opened, Deposited, Withdrawn, Transferred),
    decide=decide,
    evolve=evolve,
)
