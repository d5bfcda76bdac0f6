"""Payments of orders, in pounds. The amount is a string in the JSON, so that it stays exact."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, VISITOR

CONTRACT = Contract(
    name="payments",
    description="Payments of orders.",
    topic="payments",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "order_id": "STRING",
        "amount": "DECIMAL(14,3)",
        "method": "STRING",
        "country": "STRING",
    },
    column_descriptions={
        **EVENT,
        **VISITOR,
        "order_id": "The order that was paid.",
        "amount": "What was paid, in pounds.",
        "method": "card, paypal or transfer.",
        "country": "The country that the payment came from.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "order_id", "amount"),
    subject="user_id",
)
