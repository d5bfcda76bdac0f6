"""The balance of each account after each event of it. A transfer is two rows: what left one account, and what came to the other.

Each row is final. An account's newest row counts: ``max_by(balance, struct(at, event_id)) ... GROUP BY ledger, account``. The
rows of an event become visible together, so ``posted`` sums to zero in every version of the view, and so do the balances of a
ledger.
"""

from datetime import timedelta
from decimal import Decimal

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

# By the column that names the account: whether an event's money comes to it (1) or leaves it (-1).
SIGNS = {"account": 0, "from_account": -1, "to_account": 1}
OPENED, MOVED = "type = 'opened'", "type <> 'opened' AND from_account <> to_account"


def _of(column: str, where: str) -> Input:
    """A ledger may have any number of accounts, so each has a machine of its own."""
    columns = ("event_id", "ledger", column, "amount")
    return Input("account_events", f"to_json(array(ledger, {column}))", columns, where=where)


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the balance of one account."""
    data = event.data
    column = next(name for name in SIGNS if name in data)
    posted = Decimal(SIGNS[column]) * (data["amount"] or 0)
    balance = (state or Decimal(0)) + posted
    row = {"ledger": data["ledger"], "account": data[column], "event_id": data["event_id"]}
    return balance, [row | {"posted": posted, "balance": balance}]


VIEW = Keyed(
    name="account_balances",
    description="The balance of each account, after each event of it.",
    columns={
        "ledger": "STRING",
        "account": "STRING",
        "event_id": "STRING",
        "posted": "DECIMAL(14,3)",
        "balance": "DECIMAL(17,3)",
    },
    column_descriptions={
        "account": "The account; `outside` is all money that is in none.",
        "event_id": "The event after which the balance is so. Of events of one instant, the smaller id comes first.",
        "posted": "By how much the event has changed the balance, in the ledger's currency; zero when it was opened.",
        "balance": (
            "The balance after the event, in the ledger's currency. That of `outside` is what it owes to the others, "
            "below zero."
        ),
    },
    key=("ledger", "account", "event_id"),
    # Processors write events in the order of their times. But heartbeats may pass an event that is just being decided.
    allowed_lateness=timedelta(seconds=10),
    inputs=(_of("account", OPENED), _of("from_account", MOVED), _of("to_account", MOVED)),
    process=process,
)
