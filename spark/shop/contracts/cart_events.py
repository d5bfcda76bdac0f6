"""What has happened to shopping carts: the log of the aggregate, which its processors alone write."""

from lockstep.contracts import Contract
from shop.aggregates.carts import AGGREGATE
from shop.descriptions import EVENT, OF_A_COMMAND

CONTRACT = Contract(
    name="cart_events",
    description="What has happened to shopping carts, and why: added, removed, quantity_set or checked_out.",
    topic=AGGREGATE.topic("events"),
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "command_id": "STRING",
        "type": "STRING",
        "cart_id": "STRING",
        "because": "STRING",
        "product_id": "STRING",
        "quantity": "INT",
    },
    column_descriptions={
        **EVENT,
        **OF_A_COMMAND,
        "type": "added, removed, quantity_set or checked_out.",
        "cart_id": "The cart.",
        "because": "What made the customer do it, in the sender's words; empty: it is not known.",
        "product_id": "The product; null: the cart was checked out.",
        "quantity": "How many were added, or how many there are from now on; null: it was removed, or the cart was checked out.",
    },
    key=("cart_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "command_id", "type", "cart_id"),
    partitions=AGGREGATE.partitions,
)
