"""What has happened to accounts: the log of the aggregate, which its processors alone write.

The topic is the aggregate's, and so is the number of its partitions: it is fixed with the first command.
"""

from lockstep.contracts import Contract
from shop.aggregates.accounts import AGGREGATE
from shop.descriptions import EVENT, OF_A_COMMAND

CONTRACT = Contract(
    name="account_events",
    description="What has happened to accounts: opened, deposited, withdrawn or transferred.",
    topic=AGGREGATE.topic("events"),
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "command_id": "STRING",
        "type": "STRING",
        "ledger": "STRING",
        "account": "STRING",
        "from_account": "STRING",
        "to_account": "STRING",
        "amount": "DECIMAL(14,3)",
    },
    column_descriptions={
        **EVENT,
        **OF_A_COMMAND,
        "type": "opened, deposited, withdrawn or transferred.",
        "ledger": "The ledger of the accounts. Money is moved within it, and it is in one currency.",
        "account": "The account that was opened; null: money was moved.",
        "from_account": "The account that the money left; `outside` for a deposit; null: the account was opened.",
        "to_account": "The account that the money came to; `outside` for a withdrawal; null: the account was opened.",
        "amount": "How much was moved, in the ledger's currency, above zero; null: the account was opened.",
    },
    key=("ledger",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "command_id", "type", "ledger"),
    partitions=AGGREGATE.partitions,
)
