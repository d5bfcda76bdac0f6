"""Customers follow a product, or stop following it (``follows`` is false)."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT

CONTRACT = Contract(
    name="follows",
    description="Customers follow a product, or stop following it.",
    topic="follows",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "product_id": "STRING",
        "follows": "BOOLEAN",
    },
    column_descriptions={
        **EVENT,
        "user_id": "The customer: user_id of users.",
        "product_id": "The product that is followed.",
        "follows": "True: the customer follows it from now on. False: no longer.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "product_id", "follows"),
    subject="user_id",
)
